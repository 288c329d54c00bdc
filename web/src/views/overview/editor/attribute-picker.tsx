// A list of attributes with a search box: typed words filter it, arrows move, Enter chooses.

import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import type { Units } from "../../../data/units.ts";
import { type AttributeChoice, listChoices, searchChoices } from "./attribute-choices.ts";
import styles from "./settings.module.css";

interface AttributePickerProps {
  readonly units: Units;
  /** Attributes of the layers there are. */
  readonly used: readonly string[];
  readonly value: string | null;
  /** Which of the choices to offer; all where it is left out. */
  readonly kind?: "number";
  onChoose(attribute: string): void;
}

export function AttributePicker({ units, used, value, kind, onChoose }: AttributePickerProps) {
  const listId = useId();
  const [text, setText] = useState("");
  const [active, setActive] = useState<string | null>(value);
  const all = useMemo(() => listChoices(units, used), [units, used]);
  const choices = useMemo(
    () => searchChoices(kind ? all.filter(({ attribute }) => attribute.kind === kind) : all, text),
    [all, kind, text],
  );
  const current = choices.find(({ attribute }) => attribute.name === active) ?? choices[0];
  const list = useRef<HTMLDivElement>(null);
  const currentName = current?.attribute.name;
  useEffect(() => {
    if (currentName === undefined) return;
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [currentName]);

  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      const at = choices.findIndex(({ attribute }) => attribute.name === currentName);
      setActive(choices[(at + step + choices.length) % choices.length]?.attribute.name ?? null);
    } else if (event.key === "Enter" && current) onChoose(current.attribute.name);
    else return;
    event.preventDefault();
  };
  return (
    <div className={styles.picker}>
      <input
        type="search"
        role="combobox"
        aria-label="Search attributes"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={current && `${listId}-${current.attribute.name}`}
        placeholder="Search attributes"
        // biome-ignore lint/a11y/noAutofocus: the list was just opened to be searched
        autoFocus
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div ref={list} id={listId} role="listbox" aria-label="Attributes" className={styles.choices}>
        {choices.map((choice) => (
          <Choice
            key={choice.attribute.name}
            id={`${listId}-${choice.attribute.name}`}
            choice={choice}
            isActive={choice === current}
            isUsed={used.includes(choice.attribute.name)}
            onChoose={onChoose}
          />
        ))}
        {choices.length === 0 && <p>No matching attributes.</p>}
      </div>
    </div>
  );
}

interface ChoiceProps {
  readonly id: string;
  readonly choice: AttributeChoice;
  readonly isActive: boolean;
  readonly isUsed: boolean;
  onChoose(attribute: string): void;
}

function Choice({ id, choice: { attribute, hint }, isActive, isUsed, onChoose }: ChoiceProps) {
  return (
    <button
      type="button"
      data-row={true}
      role="option"
      id={id}
      tabIndex={-1}
      aria-selected={isActive}
      data-used={isUsed || undefined}
      onClick={() => onChoose(attribute.name)}
    >
      <span>{attribute.title}</span>
      <small>{hint}</small>
    </button>
  );
}
