// A number input with a unit; empty means no value.

import { useState } from "react";
import type { Quantity } from "../../../base/format.ts";
import styles from "./number-input.module.css";
import { fromTyped, TYPED_UNITS, toTyped } from "./number-words.ts";

interface NumberInputProps {
  readonly label: string;
  readonly unit: Quantity;
  readonly value: number | null;
  /** What holds where nobody said anything. */
  readonly auto: number;
  /** Whether it may be taken over; what may not be is shown as wrong. */
  isValid(value: number): boolean;
  onChange(value: number | null): void;
}

export function NumberInput({ label, unit, value, auto, isValid, onChange }: NumberInputProps) {
  const [draft, setDraft] = useState<string | null>(null);
  const [, sign] = TYPED_UNITS[unit];
  const typed = draft === null || draft.trim() === "" ? null : fromTyped(Number(draft), unit);
  const isWrong = typed !== null && (!Number.isFinite(typed) || !isValid(typed));
  const take = () => {
    if (draft !== null && !isWrong) onChange(typed);
    setDraft(null);
  };
  return (
    <span className={styles.box} data-wrong={isWrong || undefined}>
      <input
        type="text"
        inputMode="decimal"
        aria-label={`${label}${sign && `, ${sign}`}`}
        aria-invalid={isWrong}
        placeholder={`auto: ${Number(toTyped(auto, unit).toPrecision(4))}`}
        value={draft ?? (value === null ? "" : String(toTyped(value, unit)))}
        onChange={(event) => setDraft(event.target.value)}
        onBlur={take}
        onKeyDown={(event) => {
          if (event.key === "Enter") take();
          else if (event.key === "Escape" && draft !== null) {
            event.stopPropagation();
            setDraft(null);
          }
        }}
      />
      <small>{sign}</small>
    </span>
  );
}
