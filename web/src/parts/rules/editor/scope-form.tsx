// Whom a rule judges and blames, as fields.

import type { RuleFault } from "../../../api/generated.ts";
import { QUANTIFIERS, type Quantifier, type ScopeFields } from "./draft.ts";
import { Choose, FieldFault } from "./form-tab.tsx";
import styles from "./rule-editor.module.css";

interface ScopeFormProps {
  readonly scope: ScopeFields;
  readonly fault: RuleFault | null;
  onChange(scope: ScopeFields): void;
}

type TextField = Exclude<keyof ScopeFields, "quantifier">;

const WHOSE: readonly (readonly [TextField, string])[] = [
  ["users", "Users"],
  ["projects", "Projects"],
  ["partitions", "Partitions"],
  ["machine_types", "Machine types"],
  ["names", "Workload names"],
];

const FROM: readonly (readonly [TextField, string])[] = [
  ["min_age_ms", "Minimum age"],
  ["min_samples", "Minimum samples"],
  ["min_gpus", "Minimum GPUs"],
];

const BLAME: Readonly<Record<Quantifier, string>> = {
  each: "each GPU by itself",
  any: "the workload, if any GPU does",
  all: "the workload, if all GPUs do",
  share: "the workload, if a share of GPUs does",
};

export function ScopeForm({ scope, fault, onChange }: ScopeFormProps) {
  const field = ([name, title]: readonly [TextField, string], placeholder = "") => (
    <label key={name} className={styles.field}>
      <span>{title}</span>
      <input
        type="text"
        placeholder={placeholder}
        aria-invalid={fault?.path === `scope.${name}` || undefined}
        spellCheck={false}
        value={scope[name]}
        onChange={(event) => onChange({ ...scope, [name]: event.target.value })}
      />
      <FieldFault fault={fault} path={`scope.${name}`} />
    </label>
  );
  const isNarrow = WHOSE.some(([name]) => scope[name] !== "");
  return (
    <section className={styles.scope} aria-label="Scope">
      <div className={styles.fields}>
        {FROM.map((one) => field(one))}
        <div className={styles.field}>
          <span>Blames</span>
          <Choose
            label="Blames"
            value={scope.quantifier}
            options={QUANTIFIERS.map((one) => [one, BLAME[one]])}
            onChange={(quantifier) => onChange({ ...scope, quantifier: quantifier as Quantifier })}
          />
        </div>
        {scope.quantifier === "share" && field(["share", "Share of GPUs, %"])}
      </div>
      <details open={isNarrow || undefined}>
        <summary>Only some workloads</summary>
        <p className={styles.note}>Names or patterns such as nlp-*, separated by commas; empty: all.</p>
        <div className={styles.fields}>{WHOSE.map((one) => field(one, "all"))}</div>
      </details>
    </section>
  );
}
