// One stacked bar per step, to click or to select a range of. The caller defines the parts and the selection.

import { type KeyboardEvent, useRef, useState } from "react";
import { useSize } from "./canvas.tsx";
import { ChartTip } from "./chart-tip.tsx";
import styles from "./step-bars.module.css";
import { useDrawing } from "./use-drawing.ts";

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
  const barAt = (ratio: number) => Math.min(bars.length - 1, Math.floor(ratio * bars.length));
  const drawing = useDrawing({
    onPoint: (at) => setPointed(at === null ? null : barAt(at)),
    onDraw: (from, to) => setDrag([barAt(from), barAt(to)]),
    onDone(from, to, isDrag) {
      const [first, last] = [barAt(from), isDrag ? barAt(to) : barAt(from)];
      onSelect(Math.min(first, last), Math.max(first, last));
      setDrag(null);
    },
    onCancel: () => setDrag(null),
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const [first, last] = selected ?? [-1, -1];
    if (move === undefined || bars.length === 0) return;
    event.preventDefault();
    const next = Math.min(bars.length - 1, Math.max(0, (move > 0 ? last : first) + move));
    if (event.shiftKey && selected) onSelect(Math.min(first, next), Math.max(last, next));
    else onSelect(next, next);
  };
  const brushed = drag ? ([Math.min(...drag), Math.max(...drag)] as const) : selected;
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
      {...drawing}
      onKeyDown={onKeyDown}
    >
      {bars.map(({ key, lengths }, at) => (
        <div
          key={key}
          className={styles.bar}
          data-selected={(brushed !== null && at >= brushed[0] && at <= brushed[1]) || undefined}
          data-many={!hasRoom || undefined}
        >
          {/* Room below every bar, so that all stand on one line. */}
          <small>{hasRoom || (brushed?.[0] === at && brushed[1] === at) ? key : "\u00a0"}</small>
          <div data-cut={sum(lengths) > top * 1.001 || undefined}>
            {parts.map((part, index) => (
              <i key={part.key} style={{ height: `${((lengths[index] ?? 0) / top) * 100}%`, background: part.color }} />
            ))}
          </div>
        </div>
      ))}
      {bar && pointed !== null && (
        <ChartTip
          at={(pointed + 0.5) / bars.length}
          title={bar.title}
          rows={parts.map((part, index) => ({ ...part, text: bar.words[index] ?? "" }))}
        />
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
