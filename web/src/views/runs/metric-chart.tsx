// Chart of one metric of the compared runs or groups, over time, steps or epochs.

import { useMemo, useRef, useState } from "react";
import type { Quantity } from "../../base/format.ts";
import { Axis } from "../../charts/axis.tsx";
import { useSize } from "../../charts/canvas.tsx";
import { type ChartBand, type ChartLine, LineChart, type TimeRange } from "../../charts/line-chart.tsx";
import { bytesUnit, findLast, linearScale } from "../../charts/scales.ts";
import type { RunAxis } from "../../state/runs.ts";
import styles from "./charts.module.css";
import { UnfinishedMark } from "./legend.tsx";
import { formatNumber } from "./quantities.ts";

export interface DrawnLine {
  readonly key: string;
  readonly label: string;
  readonly color: string;
  readonly x: Float64Array;
  readonly values: Float64Array;
  /** The band around the line; null: no band. */
  readonly low: Float64Array | null;
  readonly high: Float64Array | null;
  /** Drawn dashed: of runs that did not complete. */
  readonly unfinished: string | null;
}

interface MetricChartProps {
  readonly title: string;
  readonly unit: Quantity | null;
  readonly axis: RunAxis;
  readonly lines: readonly DrawnLine[];
  /** Shared by all charts, so that they can be compared. */
  readonly range: readonly [number, number];
  readonly cursor: number | null;
  onCursor(x: number | null): void;
  onZoom(range: readonly [number, number]): void;
}

const NO_SPANS: readonly never[] = [];
const X_LABEL_PX = 70;
const Y_LABEL_PX = 36;

export function MetricChart({ title, unit, axis, lines, range, cursor, onCursor, onZoom }: MetricChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const { width, height } = useSize(place);
  const [drawn, setDrawn] = useState<TimeRange | null>(null);
  const [low, high] = useMemo(() => extentOf(lines, range), [lines, range]);
  const chart = useMemo(() => toChart(lines), [lines]);
  const timeUnit = axis === "time" ? unitOf(range[1]) : 1;
  const formatTick = (value: number) => (axis === "time" ? formatX(value, axis, timeUnit) : formatNumber(value, null));
  const x = linearScale(range[0], range[1], width / X_LABEL_PX, formatTick, timeUnit);
  const y = linearScale(low, high, height / Y_LABEL_PX, (value) => formatNumber(value, unit), bytesUnit(high, unit));
  const values = cursor === null ? null : lines.map((line) => valueAt(line, cursor));
  return (
    <section className={styles.card} aria-label={title}>
      <header>
        <h3 data-drawn-label={true}>{title}</h3>
        {cursor !== null && <small>{formatX(cursor, axis)}</small>}
      </header>
      <div className={styles.plot}>
        <Axis scale={y} side="left" length={height} />
        <div ref={place} className={styles.area}>
          <LineChart
            label={`${title} over ${axis}`}
            startMs={range[0]}
            endMs={range[1]}
            low={low}
            high={high}
            lines={chart.lines}
            bands={chart.bands}
            spans={NO_SPANS}
            cursorMs={cursor}
            drawn={drawn}
            onCursor={onCursor}
            onDraw={(next, isDone) => {
              setDrawn(isDone ? null : next);
              if (isDone && next) onZoom([next.fromMs, next.toMs]);
            }}
          />
        </div>
        <Axis scale={x} side="below" length={width} />
        <small className={styles.axisName} data-drawn-label={true}>
          {AXIS_NAMES[axis]}
        </small>
      </div>
      {values && (
        <ul className={styles.values}>
          {lines.slice(0, 8).map((line, at) => (
            <li key={line.key}>
              <i data-swatch={true} style={{ background: line.color }} />
              {line.label} {line.unfinished !== null && <UnfinishedMark what={line.unfinished} />}
              <b>{formatNumber(values[at] ?? null, unit)}</b>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** Seconds up to two minutes, minutes up to two hours, then hours. */
function unitOf(maximum: number): 1 | 60 | 3600 {
  return maximum < 120 ? 1 : maximum < 7200 ? 60 : 3600;
}

const AXIS_NAMES: Readonly<Record<RunAxis, string>> = { time: "Time", step: "Step", epoch: "Epoch" };
const TIME_UNITS = { 1: "s", 60: "min", 3600: "h" };

function formatX(x: number, axis: RunAxis, scale: 1 | 60 | 3600 = unitOf(x)): string {
  return axis === "time" ? `${formatNumber(x / scale, null)} ${TIME_UNITS[scale]}` : `${axis} ${formatNumber(x, null)}`;
}

function extentOf(lines: readonly DrawnLine[], [from, to]: readonly [number, number]): readonly [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { x, values, low: lows, high: highs } of lines) {
    for (let at = 0; at < x.length; at += 1) {
      const position = x[at] ?? 0;
      if (position < from || position > to) continue;
      const lowest = lows?.[at] ?? values[at] ?? Number.NaN;
      const highest = highs?.[at] ?? values[at] ?? Number.NaN;
      if (lowest < low) low = lowest;
      if (highest > high) high = highest;
    }
  }
  if (low > high) return [0, 1];
  // Starts at 0 where the values are positive and 0 is near.
  if (low > 0 && low < 0.6 * high) low = 0;
  return low === high ? [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1] : [low, high];
}

function toChart(drawn: readonly DrawnLine[]): { lines: readonly ChartLine[]; bands: readonly ChartBand[] } {
  return {
    lines: drawn.map(({ key, color, x, values, unfinished }) => ({
      key,
      color,
      timesMs: x,
      values,
      width: drawn.length > 12 ? 1 : 1.5,
      alpha: drawn.length > 24 ? 0.6 : 1,
      isDashed: unfinished !== null,
    })),
    bands: drawn.flatMap(({ key, color, x, low, high }) =>
      low && high ? [{ key, color, timesMs: x, low, high }] : [],
    ),
  };
}

/** The value of the last point at or before x. */
export function valueAt({ x, values }: { x: Float64Array; values: Float64Array }, place: number): number | null {
  const value = values[findLast(x, place)];
  return value === undefined || Number.isNaN(value) ? null : value;
}
