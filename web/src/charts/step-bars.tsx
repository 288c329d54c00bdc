// One stacked bar per step, to click or to draw a range over. Which parts a step has and what selecting one does is the caller's.

import { type KeyboardEvent, type PointerEvent, useRef, useState } from "react";
import { useSize } from "./canvas.tsx";
import styles from "./step-bars.module.css";

export interface BarPart {
  readonly key: string;
  readonly title: string;
  readonly color: string;
}

export interface StepBar {
  readonly key: number;
  readonly title: string;
  /** One length per part, in any unit. */
  readonly lengths: readonly number[];
  /** In words, for the tip. */
  readonly words: readonly string[];
}

interface StepBarsProps {
  readonly label: string;
  readonly parts: readonly BarPart[];
  readonly bars: readonly StepBar[];
  /** Places of the first and the last selected bar; null: none. */
  readonly selected: readonly [number, number] | null;
  onSelect(first: number, last: number): void;
}

/** Of a bar, for its number. */
const LABEL_PX = 18;
/** Medians. */
const MOST_ABOVE = 2;

export function StepBars({ label, parts, bars, selected, onSelect }: StepBarsProps) {
  const place = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const [drag, setDrag] = useState<readonly [number, number] | null>(null);
  const { width } = useSize(place);
  const top = findTop(bars.map(({ lengths }) => sum(lengths)));
  const hasRoom = width / Math.max(1, bars.length) >= LABEL_PX;
  const barAt = (event: PointerEvent) => {
    const box = place.current?.getBoundingClientRect();
    const ratio = box ? (event.clientX - box.left) / Math.max(1, box.width) : 0;
    return Math.min(bars.length - 1, Math.max(0, Math.floor(ratio * bars.length)));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const [first, last] = selected ?? [-1, -1];
    if (move === undefined || bars.length === 0) return;
    event.preventDefault();
    const next = Math.min(bars.length - 1, Math.max(0, (move > 0 ? last : first) + move));
    if (event.shiftKey && selected) onSelect(Math.min(first, next), Math.max(last, next));
    else onSelect(next, next);
  };
  const held = drag ? ([Math.min(...drag), Math.max(...drag)] as const) : selected;
  const bar = pointed === null ? undefined : bars[pointed];
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be drawn in
    <div
      ref={place}
      role="group"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keys select here as the mouse does
      tabIndex={0}
      className={styles.chart}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrag([barAt(event), barAt(event)]);
      }}
      onPointerMove={(event) => {
        setPointed(barAt(event));
        if (drag) setDrag([drag[0], barAt(event)]);
      }}
      onPointerUp={() => {
        if (drag) onSelect(Math.min(...drag), Math.max(...drag));
        setDrag(null);
      }}
      onPointerCancel={() => setDrag(null)}
      onPointerLeave={() => setPointed(null)}
      onKeyDown={onKeyDown}
    >
      {bars.map(({ key, lengths }, at) => (
        <div
          key={key}
          className={styles.bar}
          data-selected={(held !== null && at >= held[0] && at <= held[1]) || undefined}
          data-many={!hasRoom || undefined}
        >
          {/* Room below every bar, so that all stand on one line. */}
          <small>{hasRoom || (held?.[0] === at && held[1] === at) ? key : "\u00a0"}</small>
          <div data-cut={sum(lengths) > top * 1.001 || undefined}>
            {parts.map((part, index) => (
              <i key={part.key} style={{ height: `${((lengths[index] ?? 0) / top) * 100}%`, background: part.color }} />
            ))}
          </div>
        </div>
      ))}
      {bar && pointed !== null && (
        <div className={styles.tip} style={placeTip((pointed + 0.5) / bars.length)} role="status">
          <b>{bar.title}</b>
          {parts.map((part, index) => (
            <span key={part.key}>
              <i data-swatch={true} style={{ background: part.color }} /> {part.title} <em>{bar.words[index]}</em>
            </span>
          ))}
        </div>
      )}
    </div>
  );
}

/** Of many steps the first warms up: what is far above the others is cut, so that they can be compared. */
export function findTop(totals: readonly number[]): number {
  const sorted = totals.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return Math.max(1e-12, Math.min(sorted.at(-1) ?? 0, median * MOST_ABOVE));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Beside the bar, on the side with more room. */
function placeTip(ratio: number) {
  return ratio < 0.5 ? { left: `calc(${ratio * 100}% + 12px)` } : { right: `calc(${(1 - ratio) * 100}% + 12px)` };
}
