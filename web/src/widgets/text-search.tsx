// A search box for the content of a view.

import { useRef } from "react";
import { Icon } from "./icon.tsx";
import styles from "./text-search.module.css";

interface TextSearchProps {
  readonly label: string;
  /** What can be typed, for who points at it. */
  readonly hint?: string;
  readonly value: string;
  onChange(value: string): void;
}

export function TextSearch({ label, hint, value, onChange }: TextSearchProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <span className={styles.box} data-tip={hint}>
      <Icon name="search" size={14} />
      <input
        ref={input}
        type="text"
        aria-label={label}
        placeholder={label}
        spellCheck={false}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape" && value !== "") {
            event.stopPropagation();
            onChange("");
          }
        }}
      />
      {value !== "" && (
        <button
          type="button"
          aria-label="Clear"
          onClick={() => {
            onChange("");
            input.current?.focus();
          }}
        >
          <Icon name="close" size={12} />
        </button>
      )}
    </span>
  );
}
