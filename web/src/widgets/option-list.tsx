// A list of options with a search box: typed words filter it, arrows move, Enter chooses.

import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import styles from "./option-list.module.css";

export interface Option<T extends string> {
  readonly value: T;
  readonly title: string;
  readonly hint?: string | undefined;
  /** Said above the first of its kind. */
  readonly group?: string | undefined;
}

interface OptionListProps<T extends string> {
  readonly label: string;
  readonly options: readonly Option<T>[];
  readonly value?: T | null;
  onChoose(value: T): void;
}

export function OptionList<T extends string>({ label, options, value = null, onChoose }: OptionListProps<T>) {
  const listId = useId();
  const list = useRef<HTMLDivElement>(null);
  const [text, setText] = useState("");
  const [active, setActive] = useState<T | null>(value);
  const matches = searchOptions(options, text);
  const current = matches.find((option) => option.value === active) ?? matches[0];
  const currentValue = current?.value;
  useEffect(() => {
    if (currentValue === undefined) return;
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [currentValue]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      const at = matches.findIndex((option) => option.value === currentValue);
      setActive(matches[(at + step + matches.length) % matches.length]?.value ?? null);
    } else if (event.key === "Enter" && current) onChoose(current.value);
    else return;
    event.preventDefault();
  };
  return (
    <div className={styles.box}>
      <input
        type="search"
        role="combobox"
        aria-label={label}
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={current && `${listId}-${current.value}`}
        placeholder={label}
        // biome-ignore lint/a11y/noAutofocus: the list was just opened to be searched
        autoFocus
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div ref={list} id={listId} role="listbox" aria-label={label} className={styles.list}>
        {matches.map((option, index) => (
          <div key={option.value} role="presentation">
            {option.group && option.group !== matches[index - 1]?.group && <h3>{option.group}</h3>}
            <button
              type="button"
              data-row={true}
              role="option"
              id={`${listId}-${option.value}`}
              tabIndex={-1}
              aria-selected={option === current}
              data-chosen={option.value === value || undefined}
              onClick={() => onChoose(option.value)}
            >
              <span>{option.title}</span>
              {option.hint && <small>{option.hint}</small>}
            </button>
          </div>
        ))}
        {matches.length === 0 && <p>No matches.</p>}
      </div>
    </div>
  );
}

/** Those whose title or value has all the words, in any order. */
export function searchOptions<T extends string>(options: readonly Option<T>[], text: string): readonly Option<T>[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return options.filter(({ title, value }) => {
    const searched = `${title} ${value}`.toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}
