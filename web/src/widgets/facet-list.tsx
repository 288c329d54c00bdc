// The values of an attribute with row counts, to filter by. Shortened at first; complete, with a search box, on
// request.

import { useState } from "react";
import { formatCount } from "../base/format.ts";
import styles from "./facet-list.module.css";

export interface FacetValue {
  readonly value: string;
  readonly label?: string;
  /** Null: not counted. */
  readonly count: number | null;
}

interface FacetListProps {
  readonly title: string;
  readonly values: readonly FacetValue[];
  readonly chosen: readonly string[];
  onToggle(value: string): void;
}

const SHORT = 6;

export function FacetList({ title, values, chosen, onToggle }: FacetListProps) {
  const [isOpen, setOpen] = useState(false);
  const [text, setText] = useState("");
  const isLong = values.length > SHORT + 1;
  const shown = shownValues(values, chosen, isLong && !isOpen, text);
  return (
    <section className={styles.facet} aria-label={title}>
      <h2>{title}</h2>
      {isLong && isOpen && (
        <input
          type="search"
          aria-label={`Search ${title.toLowerCase()}`}
          placeholder="Search"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      )}
      <ul data-open={isOpen || undefined}>
        {shown.map(({ value, label, count }) => (
          <li key={value}>
            <label data-none={count === 0 || undefined}>
              <input type="checkbox" checked={chosen.includes(value)} onChange={() => onToggle(value)} />
              <span title={label ?? value}>{label ?? value}</span>
              {count !== null && <small>{formatCount(count)}</small>}
            </label>
          </li>
        ))}
      </ul>
      {isLong && (
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => {
            setOpen(!isOpen);
            setText("");
          }}
        >
          {isOpen ? "Show fewer" : `Show all ${formatCount(values.length)}`}
        </button>
      )}
    </section>
  );
}

/** Chosen values are always listed, even if they count nothing now. */
function shownValues(
  values: readonly FacetValue[],
  chosen: readonly string[],
  isShort: boolean,
  text: string,
): readonly FacetValue[] {
  const listed = new Set(values.map(({ value }) => value));
  const all: readonly FacetValue[] = [
    ...values,
    ...chosen.filter((value) => !listed.has(value)).map((value) => ({ value, count: 0 })),
  ];
  const needle = text.trim().toLowerCase();
  const matches = needle ? all.filter(({ value, label }) => (label ?? value).toLowerCase().includes(needle)) : all;
  if (!isShort) return matches;
  return matches.filter(({ value }, index) => index < SHORT || chosen.includes(value));
}
