// A select in the header of a panel; native, for keyboard, touch and screen readers.

import styles from "./choice.module.css";

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly { readonly value: T; readonly title: string; readonly isDisabled?: boolean }[];
  /** Shown before the value. */
  readonly prefix?: string;
  onChange(value: T): void;
}

export function Choice<T extends string>({ label, value, options, prefix, onChange }: ChoiceProps<T>) {
  return (
    <label className={styles.choice}>
      {prefix && <span>{prefix}</span>}
      <select
        aria-label={label}
        value={value}
        onChange={(event) => {
          const selected = options.find((option) => option.value === event.target.value);
          if (selected) onChange(selected.value);
        }}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value} disabled={option.isDisabled}>
            {option.title}
          </option>
        ))}
      </select>
    </label>
  );
}
