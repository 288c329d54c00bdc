// The rule editor in a sheet next to the picture: as form, text or JSON, tested on past data before it is saved.

import * as Dialog from "@radix-ui/react-dialog";
import { useState } from "react";
import type { RuleAnswer, RuleChange, Severity } from "../../../api/generated.ts";
import { toProblem, toSentence } from "../../../base/problem.ts";
import { useRuleActions, useRuleLanguage } from "../../../data/rules.ts";
import { nameView } from "../../../state/view-document.ts";
import { Button, IconButton } from "../../../widgets/button.tsx";
import { DialogContent } from "../../../widgets/dialog.tsx";
import { Segmented } from "../../../widgets/segmented.tsx";
import { OWN_COLORS } from "../rule-colors.ts";
import { partsOf } from "../use-rule-changes.ts";
import { TABS, type Tab } from "./draft.ts";
import { FormTab } from "./form-tab.tsx";
import styles from "./rule-editor.module.css";
import { TextTab } from "./text-tab.tsx";
import { Trial } from "./trial.tsx";
import { type DraftState, useDraft } from "./use-draft.ts";

interface RuleEditorProps {
  /** Null: a new one. */
  readonly rule: RuleAnswer | null;
  readonly rules: readonly RuleAnswer[];
  onRemove(rule: RuleAnswer): void;
  onClose(): void;
}

const TAB_TITLES: Readonly<Record<Tab, string>> = { form: "Form", text: "Text", json: "JSON" };
const SEVERITIES: readonly Severity[] = ["info", "warning", "critical"];
const MOST_NAME = 100;

export function RuleEditor({ rule, rules, onRemove, onClose }: RuleEditorProps) {
  const language = useRuleLanguage();
  const state = useDraft(rule);
  const [tab, setTab] = useState<Tab>(state.draft.source);
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <DialogContent
        look="sheet"
        aria-describedby={undefined}
        onEscapeKeyDown={(event) => {
          // The first Escape closes what is offered, the next one the sheet.
          if (event.target instanceof Element && event.target.ariaExpanded === "true") event.preventDefault();
        }}
        onInteractOutside={(event) => {
          if (state.isTouched) event.preventDefault();
        }}
      >
        <header className={styles.head}>
          <Dialog.Title>{rule ? `Edit ${rule.name}` : "New rule"}</Dialog.Title>
          <Dialog.Close asChild>
            <IconButton icon="close" label="Close" />
          </Dialog.Close>
        </header>
        <div className={styles.body}>
          <Naming state={state} />
          <div className={styles.tabs}>
            <Segmented<Tab>
              label="Edit as"
              name="rule-tab"
              value={tab}
              options={TABS.map((value) => ({ value, title: TAB_TITLES[value] }))}
              onChange={setTab}
            />
            {state.fault && tab !== state.draft.source && (
              <small className={styles.fault}>
                The {TAB_TITLES[state.draft.source]} has a fault; this is what could be read last.
              </small>
            )}
          </div>
          {tab === "form" && <FormTab state={state} language={language} />}
          {tab === "text" && <TextTab state={state} />}
          {tab === "json" && <JsonTab state={state} />}
          <Words state={state} />
          <Trial reading={state.isRead ? state.reading : null} />
        </div>
        <Saving rule={rule} rules={rules} state={state} onRemove={onRemove} onClose={onClose} />
      </DialogContent>
    </Dialog.Root>
  );
}

function Naming({ state: { draft, change } }: { state: DraftState }) {
  return (
    <section className={styles.naming} aria-label="About">
      <label className={styles.field}>
        <span>Name</span>
        <input
          type="text"
          maxLength={MOST_NAME}
          placeholder="What it finds, in a few words"
          value={draft.name}
          onChange={(event) => change({ name: event.target.value })}
        />
      </label>
      <div className={styles.field}>
        <span>Severity</span>
        <Segmented<Severity>
          label="Severity"
          name="rule-severity"
          value={draft.severity}
          options={SEVERITIES.map((value) => ({ value, title: value }))}
          onChange={(severity) => change({ severity })}
        />
      </div>
      <div className={styles.field}>
        <span>Color</span>
        <fieldset className={styles.colors} aria-label="Color">
          {[{ value: "", title: "By severity" }, ...OWN_COLORS].map(({ value, title }) => (
            <label key={value} data-tip={title} style={value === "" ? undefined : { background: value }}>
              <input
                type="radio"
                name="rule-color"
                aria-label={title}
                checked={(draft.color ?? "") === value}
                onChange={() => change({ color: value === "" ? null : value })}
              />
            </label>
          ))}
        </fieldset>
      </div>
      <label className={styles.field}>
        <span>Reason</span>
        <textarea
          rows={2}
          placeholder="What it indicates, and what to do about it"
          value={draft.reason}
          onChange={(event) => change({ reason: event.target.value })}
        />
      </label>
      <label className={styles.field}>
        <span>Advice</span>
        <textarea
          rows={2}
          placeholder="For the user of the workload: what they can do"
          value={draft.advice}
          onChange={(event) => change({ advice: event.target.value })}
        />
      </label>
    </section>
  );
}

function JsonTab({ state: { draft, fault, change } }: { state: DraftState }) {
  return (
    <div className={styles.jsonTab}>
      <textarea
        aria-label="Rule as JSON"
        aria-invalid={(fault !== null && draft.source === "json") || undefined}
        spellCheck={false}
        value={draft.json}
        onChange={(event) => change({ json: event.target.value, source: "json" })}
      />
      {fault && draft.source === "json" && (
        <p role="alert" className={styles.fault}>
          {fault.message} {fault.hint}
        </p>
      )}
    </div>
  );
}

function Words({ state: { reading, fault, isRead } }: { state: DraftState }) {
  if (reading === null) return null;
  return (
    <section className={styles.words} aria-label="In words" data-stale={!isRead || fault !== null || undefined}>
      <h2>In words</h2>
      <ul aria-live="polite">
        {reading.words.map((line) => (
          <li key={line}>{line.replace(/^[^:]*: /, "")}</li>
        ))}
      </ul>
      <code>{reading.text}</code>
    </section>
  );
}

interface SavingProps extends RuleEditorProps {
  readonly state: DraftState;
}

function Saving({ rule, rules, state, onRemove, onClose }: SavingProps) {
  const actions = useRuleActions();
  const [problem, setProblem] = useState<string | null>(null);
  const [isSaving, setSaving] = useState(false);
  const { draft, reading, isRead } = state;
  const name = draft.name.trim();
  const save = async (isNew: boolean) => {
    if (reading?.document == null) return;
    const keys = rules.map(({ key }) => key);
    const key = isNew || rule === null ? nameView(name || "rule", keys) : rule.key;
    const { severity, color, reason, advice } = draft;
    const document = partsOf(reading.document);
    const change: RuleChange = { name: name || key, severity, color, reason, advice, document };
    setSaving(true);
    try {
      await actions.save(key, change);
      onClose();
    } catch (error) {
      const { message, hint } = toProblem(error);
      setProblem([toSentence(message), hint].filter(Boolean).join(" "));
      setSaving(false);
    }
  };
  const isReady = isRead && !isSaving && name !== "";
  return (
    <footer className={styles.foot}>
      {rule && (!rule.is_shipped || rule.is_changed) && (
        <Button
          onClick={() => {
            onRemove(rule);
            onClose();
          }}
        >
          {rule.is_shipped ? "Reset" : "Delete"}
        </Button>
      )}
      <span role="alert" className={styles.fault}>
        {problem}
      </span>
      {name === "" && isRead && <small className={styles.note}>Enter a name.</small>}
      {rule && (
        <Button disabled={!isReady || name === rule.name} onClick={() => void save(true)}>
          Save as new
        </Button>
      )}
      <Button look="primary" disabled={!isReady} onClick={() => void save(false)}>
        {rule ? "Save" : "Add rule"}
      </Button>
    </footer>
  );
}
