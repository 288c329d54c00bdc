// The scope of a rule as fields: which workloads it evaluates and what it reports.

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

const NAME_FIELDS: readonly (readonly [TextField, string])[] = [
  ["users", "Users"],
  ["projects", "Projects"],
  ["partitions", "Partitions"],
  ["machine_types", "Machine types"],
  ["names", "Workload names"],
];

const MINIMUM_FIELDS: readonly (readonly [TextField, string])[] = [
  ["min_age_ms", "Minimum age"],
  ["min_samples", "Minimum samples"],
  ["min_gpus", "Minimum GPUs"],
];

const REPORTED_AS: Readonly<Record<Quantifier, string>> = {
  each: "each GPU separately",
  any: "the workload, if any GPU matches",
  all: "the workload, if all GPUs match",
  share: "the workload, if a share of GPUs matches",
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
  const isNarrow = NAME_FIELDS.some(([name]) => scope[name] !== "");
  return (
    <section className={styles.scope} aria-label="Scope">
      <div className={styles.fields}>
        {MINIMUM_FIELDS.map((name) => field(name))}
        <div className={styles.field}>
          <span>Blames</span>
          <Choose
            label="Reported as"
            value={scope.quantifier}
            options={QUANTIFIERS.map((quantifier) => [quantifier, REPORTED_AS[quantifier]])}
            onChange={(quantifier) => onChange({ ...scope, quantifier: quantifier as Quantifier })}
          />
        </div>
        {scope.quantifier === "share" && field(["share", "Share of GPUs, %"])}
      </div>
      <details open={isNarrow || undefined}>
        <summary>Limit to some workloads</summary>
        <p className={styles.note}>Names or patterns such as nlp-*, separated by commas; empty: all.</p>
        <div className={styles.fields}>{NAME_FIELDS.map((name) => field(name, "all"))}</div>
      </details>
    </section>
  );
}
