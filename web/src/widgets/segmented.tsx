// A segmented control: one choice among few, all visible. A radio group: arrow keys move, Tab leaves.

import { classNames } from "../base/class-names.ts";
import styles from "./segmented.module.css";

export interface SegmentedOption<T extends string> {
  readonly value: T;
  readonly title: string;
  readonly count?: string | undefined;
  /** Why it cannot be chosen. */
  readonly disabled?: string | undefined;
}

interface SegmentedProps<T extends string> {
  readonly label: string;
  readonly name: string;
  readonly options: readonly SegmentedOption<T>[];
  readonly value: T;
  onChange(value: T): void;
}

export function Segmented<T extends string>({ label, name, options, value, onChange }: SegmentedProps<T>) {
  return (
    <fieldset className={styles.group} aria-label={label}>
      {options.map((option) => (
        <label
          key={option.value}
          className={classNames(styles.option, option.value === value && styles.on)}
          data-tip={option.disabled}
        >
          <input
            type="radio"
            name={name}
            value={option.value}
            checked={option.value === value}
            disabled={option.disabled !== undefined}
            onChange={() => onChange(option.value)}
          />
          {option.title}
          {option.count !== undefined && <small>{option.count}</small>}
        </label>
      ))}
    </fieldset>
  );
}
