// Form for a what-if: another order, backfilling or placement, more or fewer nodes, a limit, a workload moved to the front.

import { type FormEvent, useState } from "react";
import type { PartitionQueue, PlacementEvidence } from "../../../api/generated.ts";
import { type Choice, LIVE_BACKFILLS, PLACEMENTS, POLICIES } from "../../../base/catalogue.ts";
import {
  changeScheduling,
  isWhatIf,
  NO_WHAT_IF,
  type SchedulingPage,
  type WhatIfChoice,
} from "../../../state/scheduling.ts";
import { useChangeScreen, useScreen } from "../../../state/use-screen.ts";
import { Button } from "../../../widgets/button.tsx";
import { Chip, Chips } from "../../../widgets/chip.tsx";
import styles from "./controls.module.css";
import { changeNodes, listChips, NODE_CHANGES, type NodeChange } from "./what-if-changes.ts";

interface WhatIfFormProps {
  readonly partitions: readonly PartitionQueue[];
  readonly page: SchedulingPage;
}

interface WhatIfFormWithQueueProps extends WhatIfFormProps {
  /** The scheduler's placement; null until it is known. */
  readonly placement: PlacementEvidence | null;
  isWaiting(workload: string): boolean;
}

export function WhatIfForm({ partitions, page, placement, isWaiting }: WhatIfFormWithQueueProps) {
  const change = useChangeScreen();
  const { selection } = useScreen();
  const [whatIf, edit, isSimulated] = useDraft(page.whatIf);
  const waiting = selection?.kind === "workload" && isWaiting(selection.key) ? selection.key : null;
  return (
    <section aria-label="What if">
      <div className={styles.head}>
        <h2>What if</h2>
        {isWhatIf(whatIf) && (
          <button
            type="button"
            className={styles.reset}
            onClick={() => {
              edit(NO_WHAT_IF);
              change(changeScheduling({ whatIf: NO_WHAT_IF }));
            }}
          >
            Reset
          </button>
        )}
      </div>
      <div className={styles.fields}>
        <SelectField
          title="Order"
          currentLabel="Priorities (current)"
          value={whatIf.policy}
          options={POLICIES}
          onChange={(policy) => edit({ policy })}
        />
        <SelectField
          title="Backfill"
          currentLabel="EASY (current)"
          value={whatIf.backfill}
          options={LIVE_BACKFILLS}
          onChange={(backfill) => edit({ backfill })}
        />
        <SelectField
          title="Placement"
          currentLabel={describeCurrent(placement)}
          value={whatIf.placement}
          options={PLACEMENTS.filter(({ name }) => name !== placement?.placement || name === whatIf.placement)}
          onChange={(name) => edit({ placement: name })}
        />
        {placement && <p className={styles.evidence}>{describeEvidence(placement)}</p>}
        <NodesForm partitions={partitions} onAdd={(...what) => edit(changeNodes(whatIf, ...what))} />
        {waiting && !whatIf.first.includes(waiting) && (
          <Button onClick={() => edit({ first: [...whatIf.first, waiting] })}>
            Move selected workload to the front
          </Button>
        )}
        <ChangeChips choice={whatIf} onChange={edit} />
        <p className={styles.plan} role="status" aria-label="What will be simulated">
          {describeRun(whatIf, isSimulated)}
        </p>
        <Button
          look="primary"
          disabled={!isWhatIf(whatIf) || isSimulated}
          onClick={() => change(changeScheduling({ whatIf }))}
        >
          Simulate
        </Button>
      </div>
    </section>
  );
}

/** The changes that are not simulated yet. Those of a link, or simulated elsewhere, replace them. */
function useDraft(
  simulated: WhatIfChoice,
): readonly [draft: WhatIfChoice, edit: (changes: Partial<WhatIfChoice>) => void, isSimulated: boolean] {
  const [draft, setDraft] = useState(simulated);
  const [origin, setOrigin] = useState(simulated);
  if (!isSameChoice(origin, simulated)) {
    setOrigin(simulated);
    setDraft(simulated);
  }
  const edit = (changes: Partial<WhatIfChoice>) => setDraft((last) => ({ ...last, ...changes }));
  return [draft, edit, isSameChoice(draft, simulated)];
}

function isSameChoice(a: WhatIfChoice, b: WhatIfChoice): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** What the button will simulate, or what is simulated, in one sentence. */
export function describeRun(choice: WhatIfChoice, isSimulated: boolean): string {
  const title = (choices: readonly Choice[], name: string) => choices.find((option) => option.name === name)?.title;
  const changes = [
    choice.policy && `order ${title(POLICIES, choice.policy) ?? choice.policy}`,
    choice.backfill && `backfill ${title(LIVE_BACKFILLS, choice.backfill) ?? choice.backfill}`,
    choice.placement && `placement ${title(PLACEMENTS, choice.placement) ?? choice.placement}`,
    ...listChips(choice).map(({ words }) => words),
  ].filter(Boolean);
  if (changes.length === 0) return "Choose a change to simulate; nothing runs before.";
  return `${isSimulated ? "Simulated" : "Will simulate"} the current queue with ${changes.join(", ")}, and without.`;
}

const CERTAINTY: Readonly<Record<PlacementEvidence["certainty"], string>> = {
  sure: "current",
  likely: "probably current",
  assumed: "assumed",
};

export function describeCurrent(placement: PlacementEvidence | null): string {
  return placement === null ? "Current" : `${placement.title} (${CERTAINTY[placement.certainty]})`;
}

/** Without the title, which the field shows. */
export function describeEvidence({ title, text }: PlacementEvidence): string {
  const reason = text.replace(`${title}: `, "");
  return reason.charAt(0).toUpperCase() + reason.slice(1);
}

interface SelectFieldProps {
  readonly title: string;
  readonly currentLabel: string;
  readonly value: string;
  readonly options: readonly Choice[];
  onChange(value: string): void;
}

function SelectField({ title, currentLabel, value, options, onChange }: SelectFieldProps) {
  return (
    <label className={styles.pick}>
      <span>{title}</span>
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">{currentLabel}</option>
        {options.map((choice) => (
          <option key={choice.name} value={choice.name}>
            {choice.title}
          </option>
        ))}
      </select>
    </label>
  );
}

interface NodesFormProps {
  readonly partitions: readonly PartitionQueue[];
  onAdd(kind: NodeChange, target: string, count: number): void;
}

function NodesForm({ partitions, onAdd }: NodesFormProps) {
  const [kind, setKind] = useState<NodeChange>("add");
  const [count, setCount] = useState(4);
  const [target, setTarget] = useState("");
  const names = partitions.map(({ name }) => name);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onAdd(kind, target || (kind === "drain" ? "" : (names[0] ?? "")), count);
  };
  return (
    <form className={styles.nodes} data-kind={kind} onSubmit={submit}>
      {kind !== "drain" && (
        <input
          type="number"
          min={1}
          max={10_000}
          required
          aria-label="Count"
          value={count}
          onChange={(event) => setCount(event.target.valueAsNumber)}
        />
      )}
      <select
        aria-label="Node change"
        value={kind}
        onChange={(event) => {
          setKind(event.target.value as NodeChange);
          setTarget("");
        }}
      >
        {Object.entries(NODE_CHANGES).map(([key, words]) => (
          <option key={key} value={key}>
            {words}
          </option>
        ))}
      </select>
      {kind === "drain" ? (
        <input
          aria-label="Node"
          placeholder="gpu-001"
          required
          value={target}
          onChange={(event) => setTarget(event.target.value.trim())}
        />
      ) : (
        <select
          aria-label="Partition to change"
          value={target || names[0]}
          onChange={(event) => setTarget(event.target.value)}
        >
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
      <Button type="submit" disabled={kind !== "drain" && names.length === 0}>
        Add
      </Button>
    </form>
  );
}

interface ChangeChipsProps {
  readonly choice: WhatIfChoice;
  onChange(changes: Partial<WhatIfChoice>): void;
}

/** Changes that no menu shows, each removable. */
function ChangeChips({ choice, onChange }: ChangeChipsProps) {
  const chips = listChips(choice);
  if (chips.length === 0) return null;
  return (
    <Chips>
      {chips.map(({ key, words, without }) => (
        <Chip key={key} aria-label={`Remove ${words}`} onClick={() => onChange(without)}>
          <span>{words}</span>
        </Chip>
      ))}
    </Chips>
  );
}
