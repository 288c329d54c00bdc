// The conditions of a rule as rows of fields, and its scope.

import type { FormRow, RuleFault } from "../../../api/generated.ts";
import type { MetricWords, RuleLanguage } from "../../../api/rules-client.ts";
import { Button, IconButton } from "../../../widgets/button.tsx";
import { EMPTY_ROW, writeDuration } from "./draft.ts";
import styles from "./rule-editor.module.css";
import { ScopeForm } from "./scope-form.tsx";
import type { DraftState } from "./use-draft.ts";

interface FormTabProps {
  readonly state: DraftState;
  readonly language: RuleLanguage | undefined;
}

export function FormTab({ state, language }: FormTabProps) {
  const { draft, fault, change } = state;
  if (language === undefined) return <p className={styles.note}>Loading metrics…</p>;
  if (draft.rows.length === 0) {
    return (
      <p className={styles.note}>
        This rule has an <code>or</code> inside an <code>and</code>. The form has no parentheses: edit it as text.
      </p>
    );
  }
  const put = (rows: readonly FormRow[]) => change({ rows, source: "form" });
  const set = (at: number, changes: Partial<FormRow>) =>
    put(draft.rows.map((row, index) => (index === at ? { ...row, ...changes } : row)));
  return (
    <>
      <ol className={styles.rows} aria-label="Conditions">
        {draft.rows.map((row, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: rows have no names of their own
          <li key={at} className={styles.condition}>
            {at > 0 && (
              <Choose
                label={`Condition ${at + 1}: and or or`}
                value={row.junction ?? "and"}
                options={[
                  ["and", "and"],
                  ["or", "or"],
                ]}
                onChange={(junction) => set(at, { junction: junction as "and" | "or" })}
              />
            )}
            <ConditionFields row={row} at={at} language={language} fault={fault} onChange={(next) => set(at, next)} />
            {draft.rows.length > 1 && (
              <IconButton
                icon="close"
                label={`Remove condition ${at + 1}`}
                onClick={() => put(draft.rows.filter((_, index) => index !== at))}
              />
            )}
            <FieldFault fault={fault} path={`rows.${at}`} />
          </li>
        ))}
      </ol>
      <Button onClick={() => put([...draft.rows, EMPTY_ROW])}>+ condition</Button>
      <ScopeForm scope={draft.scope} fault={fault} onChange={(scope) => change({ scope, source: "form" })} />
    </>
  );
}

interface ConditionProps {
  readonly row: FormRow;
  readonly at: number;
  readonly language: RuleLanguage;
  readonly fault: RuleFault | null;
  onChange(changes: Partial<FormRow>): void;
}

function ConditionFields({ row, at, language, fault, onChange }: ConditionProps) {
  const metric = language.metrics.find(({ name }) => name === row.metric);
  const statistic = language.statistics.find(({ kind }) => kind === row.statistic);
  const argument = statistic?.argument ?? null;
  const units = withOwn(statistic?.units ?? metric?.units ?? [], row.unit);
  const labelOf = (field: string) => `Condition ${at + 1}: ${field}`;
  const isWrong = (field: string) => fault?.path === `rows.${at}.${field}` || undefined;
  return (
    <>
      <Choose
        label={labelOf("metric")}
        value={row.metric}
        tip={metric?.help}
        options={orderMetrics(language.metrics).map(({ name, label }) => [name, label])}
        onChange={(name) => {
          const next = language.metrics.find((metric) => metric.name === name);
          onChange({ metric: name, ...(statistic?.units ? {} : { unit: next?.units[0] ?? "" }) });
        }}
      />
      <Choose
        label={labelOf("statistic")}
        value={row.statistic}
        tip={statistic?.help}
        options={language.statistics.map(({ kind, label }) => [kind, label])}
        onChange={(kind) => {
          const next = language.statistics.find((statistic) => statistic.kind === kind);
          onChange({
            statistic: kind as FormRow["statistic"],
            argument: next?.argument === "percentile" ? "95" : next?.argument ? "5" : null,
            argument_unit: next?.argument === "threshold" ? (metric?.units[0] ?? "") : "",
            unit: next?.units?.[0] ?? metric?.units[0] ?? "",
          });
        }}
      />
      {argument !== null && (
        <input
          type="text"
          inputMode="decimal"
          className={styles.number}
          aria-label={labelOf(argument)}
          aria-invalid={isWrong("argument")}
          value={row.argument ?? ""}
          onChange={(event) => onChange({ argument: event.target.value })}
        />
      )}
      {argument === "threshold" && (
        <Choose
          label={labelOf("unit of the threshold")}
          value={row.argument_unit ?? ""}
          options={withOwn(metric?.units ?? [], row.argument_unit).map((unit) => [unit, unit])}
          onChange={(unit) => onChange({ argument_unit: unit })}
        />
      )}
      <Choose
        label={labelOf("operator")}
        value={row.operator}
        options={language.operators.map((operator) => [operator, operator])}
        onChange={(operator) => onChange({ operator: operator as FormRow["operator"] })}
      />
      <input
        type="text"
        inputMode="decimal"
        className={styles.number}
        aria-label={labelOf("value")}
        aria-invalid={isWrong("value")}
        value={row.value}
        onChange={(event) => onChange({ value: event.target.value })}
      />
      {units.length > 0 && (
        <Choose
          label={labelOf("unit")}
          value={row.unit ?? ""}
          options={units.map((unit) => [unit, `${unit}${statistic?.unit_suffix ?? ""}`])}
          onChange={(unit) => onChange({ unit })}
        />
      )}
      <Choose
        label={labelOf("window")}
        value={String(row.window_ms ?? "")}
        options={[["", "whole life"], ...listWindows(language, row)]}
        onChange={(window) => onChange({ window_ms: window === "" ? null : Number(window) })}
      />
      <Choose
        label={labelOf("across GPUs")}
        value={row.across ?? ""}
        options={[["", "each GPU"], ...language.across.map(({ kind }) => [kind, `${kind} of GPUs`] as const)]}
        onChange={(across) => onChange({ across: across === "" ? null : (across as FormRow["across"] & string) })}
      />
    </>
  );
}

/** Those that every page shows first. */
function orderMetrics(metrics: readonly MetricWords[]): readonly MetricWords[] {
  return [...metrics.filter((metric) => metric.is_summary), ...metrics.filter((metric) => !metric.is_summary)];
}

function withOwn(units: readonly string[], own: string | undefined): readonly string[] {
  return !own || units.includes(own) ? units : [own, ...units];
}

function listWindows({ windows_ms }: RuleLanguage, { window_ms }: FormRow): readonly (readonly [string, string])[] {
  const all = new Set([...windows_ms, ...(window_ms ? [window_ms] : [])]);
  return [...all].sort((a, b) => a - b).map((window) => [String(window), `last ${writeDuration(window)}`]);
}

interface ChooseProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, title: string])[];
  readonly tip?: string | undefined;
  onChange(value: string): void;
}

export function Choose({ label, value, options, tip, onChange }: ChooseProps) {
  return (
    <select aria-label={label} data-tip={tip} value={value} onChange={(event) => onChange(event.target.value)}>
      {options.map(([option, title]) => (
        <option key={option} value={option}>
          {title}
        </option>
      ))}
    </select>
  );
}

/** What is wrong with the fields below a path, where it is. */
export function FieldFault({ fault, path }: { fault: RuleFault | null; path: string }) {
  const isHere = fault?.path === path || fault?.path?.startsWith(`${path}.`);
  if (!fault || !isHere) return null;
  const words = fault.message.replace(/^[a-z_.\d]+: /, "");
  return (
    <p role="alert" className={styles.fault}>
      {words}
      {fault.hint && ` ${fault.hint}`}
    </p>
  );
}
