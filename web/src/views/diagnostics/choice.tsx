// A small choice in the head of a panel: a native list, so that keys, touch and screen readers know it.

import styles from "./choice.module.css";

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly { readonly value: T; readonly title: string; readonly isDisabled?: boolean }[];
  /** Said before the value. */
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
          const found = options.find((option) => option.value === event.target.value);
          if (found) onChange(found.value);
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
