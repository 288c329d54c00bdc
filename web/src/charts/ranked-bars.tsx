// Names with bars, longest first, to choose from. Shortened at first, complete on request.

import { useState } from "react";
import styles from "./ranked-bars.module.css";

export interface RankedBar {
  readonly key: string;
  readonly title: string;
  readonly value: number;
  /** The value in words, and what else there is to say. */
  readonly words: string;
  readonly detail: string;
}

interface RankedBarsProps {
  readonly label: string;
  readonly bars: readonly RankedBar[];
  readonly chosen: readonly string[];
  onToggle(key: string): void;
}

const SHORT = 6;

export function RankedBars({ label, bars, chosen, onToggle }: RankedBarsProps) {
  const [isOpen, setOpen] = useState(false);
  const longest = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const shown = isOpen ? bars : bars.filter(({ key }, index) => index < SHORT || chosen.includes(key));
  if (bars.length === 0) return null;
  return (
    <div className={styles.bars}>
      <ul aria-label={label} data-open={isOpen || undefined}>
        {shown.map(({ key, title, value, words, detail }) => (
          <li key={key}>
            <button
              type="button"
              data-row={true}
              aria-pressed={chosen.includes(key)}
              title={title}
              onClick={() => onToggle(key)}
            >
              <span>{title}</span>
              <small>{detail}</small>
              <em>{words}</em>
              <i style={{ width: `${(value / longest) * 100}%` }} />
            </button>
          </li>
        ))}
      </ul>
      {bars.length > SHORT && (
        <button type="button" className={styles.more} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Show fewer" : `Show all ${bars.length}`}
        </button>
      )}
    </div>
  );
}
