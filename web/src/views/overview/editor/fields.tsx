// Rows of settings popups: a label on the left, a control on the right.

import { type ReactNode, useId, useState } from "react";
import { LAYOUT_KINDS, type LayoutKind } from "../../../layout/grammar.ts";
import { LayoutIcon } from "./layout-icon.tsx";
import styles from "./settings.module.css";
import { LAYOUT_HELP } from "./words.ts";

export function Row({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className={styles.row}>
      <span>{title}</span>
      {children}
    </div>
  );
}

interface ChoiceProps<T extends string> {
  readonly title: string;
  readonly value: T;
  readonly options: readonly (readonly [value: T, title: string])[];
  onChange(value: T): void;
}

export function ChoiceRow<T extends string>({ title, value, options, onChange }: ChoiceProps<T>) {
  return (
    <Row title={title}>
      <select
        aria-label={title}
        value={value}
        onChange={(event) => {
          const chosen = options.find(([option]) => option === event.target.value);
          if (chosen) onChange(chosen[0]);
        }}
      >
        {options.map(([option, words]) => (
          <option key={option} value={option}>
            {words}
          </option>
        ))}
      </select>
    </Row>
  );
}

interface NumberProps {
  readonly title: string;
  readonly tip: string;
  readonly min: number;
  readonly max: number;
  readonly step: number;
  /** Null: left to the layout. */
  readonly value: number | null;
  onChange(value: number | null): void;
}

/** Empty means that the layout chooses; what is out of bounds is not taken over. */
export function NumberRow({ title, tip, min, max, step, value, onChange }: NumberProps) {
  const [draft, setDraft] = useState<string | null>(null);
  return (
    <Row title={title}>
      <input
        type="number"
        aria-label={title}
        data-tip={tip}
        placeholder="auto"
        min={min}
        max={max}
        step={step}
        value={draft ?? value ?? ""}
        onChange={(event) => {
          const text = event.target.value;
          const number = Number(text);
          setDraft(text);
          if (text === "") onChange(null);
          else if (number >= min && number <= max) onChange(number);
        }}
        onBlur={() => setDraft(null)}
      />
    </Row>
  );
}

interface CheckProps {
  readonly title: string;
  readonly words: string;
  readonly value: boolean;
  onChange(value: boolean): void;
}

export function CheckRow({ title, words, value, onChange }: CheckProps) {
  return (
    <Row title={title}>
      <label className={styles.check}>
        <input type="checkbox" checked={value} onChange={(event) => onChange(event.target.checked)} />
        {words}
      </label>
    </Row>
  );
}

export function LayoutRow({ value, onChange }: { value: LayoutKind; onChange: (layout: LayoutKind) => void }) {
  const name = useId();
  return (
    <Row title="Layout">
      <fieldset className={styles.layouts} aria-label="Layout">
        {LAYOUT_KINDS.map((kind) => (
          <label key={kind} data-on={kind === value || undefined} data-tip={LAYOUT_HELP[kind]}>
            <input
              type="radio"
              name={name}
              aria-label={LAYOUT_HELP[kind]}
              checked={kind === value}
              onChange={() => onChange(kind)}
            />
            <LayoutIcon layout={kind} />
          </label>
        ))}
      </fieldset>
    </Row>
  );
}
