// Counts of several series over time as stacked steps, with values on hover and a range selection: by mouse (drag;
// double-click clears) or by keys (arrows move, Shift with arrows selects, Escape clears).

import { type KeyboardEvent, useMemo, useState } from "react";
import { classNames } from "../base/class-names.ts";
import chart from "./chart.module.css";
import { ChartTip } from "./chart-tip.tsx";
import styles from "./stacked-timeline.module.css";
import { useDrawing } from "./use-drawing.ts";

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
  /** Where nothing is counted. */
  readonly none: string;
  /** `isGrown`: one that was there is drawn on, by keys. */
  onRange(range: ShownRange | null, isGrown: boolean): void;
}

export function StackedTimeline(props: StackedTimelineProps) {
  const { label, startMs, stepMs, steps, series, range, height, sayTime, sayCount, none, onRange } = props;
  const [pointed, setPointed] = useState<number | null>(null);
  const [drag, setDrag] = useState<ShownRange | null>(null);
  const totals = useMemo(() => sumSteps(series, steps), [series, steps]);
  const top = niceTop(Math.max(...totals, 1));
  const endMs = startMs + stepMs * steps;

  const stepAt = (ratio: number) => Math.min(steps - 1, Math.floor(ratio * steps));
  const toRange = (from: number, to: number): ShownRange => ({
    fromMs: startMs + Math.min(from, to) * stepMs,
    toMs: startMs + (Math.max(from, to) + 1) * stepMs,
  });
  const drawing = useDrawing({
    onPoint: (at) => setPointed(at === null ? null : stepAt(at)),
    onDraw: (from, to) => setDrag(toRange(stepAt(from), stepAt(to))),
    onDone(from, to, isDrag) {
      if (isDrag) onRange(toRange(stepAt(from), stepAt(to)), false);
      setDrag(null);
    },
    onCancel: () => setDrag(null),
  });
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

  const drawn = drag ?? range;
  const percent = (timeMs: number) => `${Math.min(1, Math.max(0, (timeMs - startMs) / (endMs - startMs))) * 100}%`;
  const hovered = pointed !== null && pointed < steps ? pointed : null;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be drawn in
    <div
      role="group"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keys point and draw here as the mouse does
      tabIndex={0}
      className={classNames(chart.drawable, styles.chart)}
      style={{ height }}
      {...drawing}
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
          <i className={chart.outside} style={{ left: 0, width: percent(drawn.fromMs) }} />
          <i className={chart.outside} style={{ left: percent(drawn.toMs), right: 0 }} />
          <i
            className={chart.range}
            style={{ left: percent(drawn.fromMs), right: `calc(100% - ${percent(drawn.toMs)})` }}
          />
        </>
      )}
      {hovered !== null && (
        <>
          <i className={chart.cursor} style={{ left: percent(startMs + (hovered + 0.5) * stepMs) }} />
          <ChartTip
            at={(hovered + 0.5) / steps}
            title={sayTime(startMs + hovered * stepMs)}
            rows={listStep(series, hovered).map((row) => ({ ...row, text: sayCount(row.count) }))}
            none={none}
          />
        </>
      )}
    </div>
  );
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
  const factor = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value) ?? 10;
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
  const previous = range ?? { fromMs, toMs: fromMs };
  return { fromMs: Math.min(previous.fromMs, step.fromMs), toMs: Math.max(previous.toMs, step.toMs) };
}
