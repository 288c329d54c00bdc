// Counts of several kinds over time as stacked steps, with values on hover and a range to draw: by mouse (drag; double-click
// clears) or by keys (arrows point, Shift with arrows draws, Escape clears). What times and counts mean is the caller's.

import { type KeyboardEvent, type PointerEvent, useMemo, useRef, useState } from "react";
import styles from "./stacked-timeline.module.css";

export interface TimelineSeries {
  readonly key: string;
  readonly title: string;
  readonly color: string;
  /** One count per step. */
  readonly values: readonly number[];
}

export interface ShownRange {
  readonly fromMs: number;
  readonly toMs: number;
}

interface StackedTimelineProps {
  readonly label: string;
  readonly startMs: number;
  readonly stepMs: number;
  readonly steps: number;
  /** First ones lie at the bottom. */
  readonly series: readonly TimelineSeries[];
  readonly range: ShownRange | null;
  readonly height: number;
  sayTime(timeMs: number): string;
  sayCount(count: number): string;
  /** `isGrown`: one that was there is drawn on, by keys. */
  onRange(range: ShownRange | null, isGrown: boolean): void;
}

const LEAST_DRAG_PX = 4;

export function StackedTimeline(props: StackedTimelineProps) {
  const { label, startMs, stepMs, steps, series, range, height, sayTime, sayCount, onRange } = props;
  const place = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const [drag, setDrag] = useState<{ from: number; to: number; startX: number } | null>(null);
  const totals = useMemo(() => sumSteps(series, steps), [series, steps]);
  const top = niceTop(Math.max(...totals, 1));
  const endMs = startMs + stepMs * steps;

  const stepAt = (event: PointerEvent) => {
    const box = place.current?.getBoundingClientRect();
    const ratio = box ? (event.clientX - box.left) / Math.max(1, box.width) : 0;
    return Math.min(steps - 1, Math.max(0, Math.floor(ratio * steps)));
  };
  const toRange = (from: number, to: number): ShownRange => ({
    fromMs: startMs + Math.min(from, to) * stepMs,
    toMs: startMs + (Math.max(from, to) + 1) * stepMs,
  });
  const onPointerMove = (event: PointerEvent) => {
    const step = stepAt(event);
    setPointed(step);
    if (drag) setDrag({ ...drag, to: step });
  };
  const onPointerUp = (event: PointerEvent) => {
    if (drag && Math.abs(event.clientX - drag.startX) >= LEAST_DRAG_PX)
      onRange(toRange(drag.from, stepAt(event)), false);
    setDrag(null);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape" && range) {
      event.preventDefault();
      onRange(null, false);
    }
    if (move === undefined) return;
    event.preventDefault();
    const step = Math.min(steps - 1, Math.max(0, (pointed ?? (move > 0 ? -1 : steps)) + move));
    setPointed(step);
    if (event.shiftKey)
      onRange(extend(range, toRange(step, step), startMs + (pointed ?? step) * stepMs), range !== null);
  };

  const drawn = drag ? toRange(drag.from, drag.to) : range;
  const percent = (timeMs: number) => `${Math.min(1, Math.max(0, (timeMs - startMs) / (endMs - startMs))) * 100}%`;
  const hovered = pointed !== null && pointed < steps ? pointed : null;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be drawn in
    <div
      ref={place}
      role="group"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keys point and draw here as the mouse does
      tabIndex={0}
      className={styles.chart}
      style={{ height }}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        const step = stepAt(event);
        setDrag({ from: step, to: step, startX: event.clientX });
      }}
      onPointerMove={onPointerMove}
      onPointerUp={onPointerUp}
      onPointerCancel={() => setDrag(null)}
      onPointerLeave={() => setPointed(null)}
      onBlur={() => setPointed(null)}
      onDoubleClick={() => onRange(null, false)}
      onKeyDown={onKeyDown}
    >
      <svg aria-hidden="true" viewBox={`0 0 ${steps} ${top}`} preserveAspectRatio="none">
        {stackPaths(series, steps, top).map((path, index) => (
          <path key={series[index]?.key} d={path} fill={series[index]?.color} />
        ))}
      </svg>
      {totals.some((total) => total > 0) && <span className={styles.top}>{sayCount(top)}</span>}
      {drawn && (
        <>
          <i className={styles.outside} style={{ left: 0, width: percent(drawn.fromMs) }} />
          <i className={styles.outside} style={{ left: percent(drawn.toMs), right: 0 }} />
          <i
            className={styles.range}
            style={{ left: percent(drawn.fromMs), right: `calc(100% - ${percent(drawn.toMs)})` }}
          />
        </>
      )}
      {hovered !== null && (
        <>
          <i className={styles.cursor} style={{ left: percent(startMs + (hovered + 0.5) * stepMs) }} />
          <div className={styles.tip} style={placeTip((hovered + 0.5) / steps)} role="status">
            <b>{sayTime(startMs + hovered * stepMs)}</b>
            {(totals[hovered] ?? 0) === 0 && <span>nothing broken</span>}
            {listStep(series, hovered).map(({ key, title, color, count }) => (
              <span key={key}>
                <i data-swatch={true} style={{ background: color }} /> {title} <em>{sayCount(count)}</em>
              </span>
            ))}
          </div>
        </>
      )}
    </div>
  );
}

/** Beside the cursor, on the side with more room. */
function placeTip(ratio: number) {
  const gap = "10px";
  return ratio < 0.5 ? { left: `calc(${ratio * 100}% + ${gap})` } : { right: `calc(${(1 - ratio) * 100}% + ${gap})` };
}

const MOST_LISTED = 8;

/** What stands at a step, largest first. */
export function listStep(series: readonly TimelineSeries[], step: number) {
  return series
    .map(({ key, title, color, values }) => ({ key, title, color, count: values[step] ?? 0 }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count)
    .slice(0, MOST_LISTED);
}

export function sumSteps(series: readonly TimelineSeries[], steps: number): readonly number[] {
  const totals = new Array<number>(steps).fill(0);
  for (const { values } of series) {
    for (let step = 0; step < steps; step += 1) totals[step] = (totals[step] ?? 0) + (values[step] ?? 0);
  }
  return totals;
}

/** A round number, at least the value and not much more. */
export function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  const factor = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((each) => each * power >= value) ?? 10;
  return Math.ceil(factor * power);
}

/** One closed step line per series, each upon the ones before; nothing where a series is 0 throughout. */
export function stackPaths(series: readonly TimelineSeries[], steps: number, top: number): readonly string[] {
  const floor = new Array<number>(steps).fill(0);
  return series.map(({ values }) => {
    let path = "";
    for (let step = 0; step < steps; step += 1) {
      const count = values[step] ?? 0;
      if (count === 0) continue;
      const base = floor[step] ?? 0;
      floor[step] = base + count;
      path += `M${step} ${top - base}v${-count}h1v${count}z`;
    }
    return path;
  });
}

/** The range with the step pointed at, grown from where the pointing began. */
function extend(range: ShownRange | null, step: ShownRange, fromMs: number): ShownRange {
  const held = range ?? { fromMs, toMs: fromMs };
  return { fromMs: Math.min(held.fromMs, step.fromMs), toMs: Math.max(held.toMs, step.toMs) };
}
