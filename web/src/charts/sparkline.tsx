// A sparkline with a band from minimum to maximum. Fits its box; gaps in time stay gaps.

import { joinSpans, placeSpan, type Span } from "./span-strip.tsx";
import styles from "./sparkline.module.css";

interface SparklineProps {
  readonly label: string;
  readonly timesMs: Float64Array;
  readonly values: Float64Array;
  readonly minima: Float64Array;
  readonly maxima: Float64Array;
  readonly startMs: number;
  readonly endMs: number;
  /** The value at the top of the box; the bottom is 0. */
  readonly top: number;
  readonly color: string;
  readonly height?: number;
  /** Times to mark behind the line, and in which color. */
  readonly shaded?: readonly Span[];
  readonly shade?: string;
}

const NO_SPANS: readonly Span[] = [];

const WIDTH = 240;

export function Sparkline({ label, height = 32, color, shaded = NO_SPANS, shade, ...data }: SparklineProps) {
  const x = (timeMs: number) => ((timeMs - data.startMs) / Math.max(1, data.endMs - data.startMs)) * WIDTH;
  const y = (value: number) => height - 1 - (value / (data.top || 1)) * (height - 2);
  const runs = splitRuns(data.timesMs);
  return (
    <svg
      role="img"
      aria-label={label}
      className={styles.chart}
      viewBox={`0 0 ${WIDTH} ${height}`}
      preserveAspectRatio="none"
      style={{ height }}
    >
      {joinSpans(shaded).map((span) => {
        const { left, width } = placeSpan(span, data.startMs, data.endMs);
        return (
          <rect
            key={span.fromMs}
            x={left * WIDTH}
            width={Math.max(1, width * WIDTH)}
            height={height}
            fill={shade}
            fillOpacity={0.18}
          />
        );
      })}
      {runs.map(([from, to]) => (
        <g key={from}>
          <path d={bandPath(data, from, to, x, y)} fill={color} fillOpacity={0.16} />
          <path d={linePath(data.timesMs, data.values, from, to, x, y)} stroke={color} fill="none" />
        </g>
      ))}
    </svg>
  );
}

type Scale = (value: number) => number;

/** Half-open index ranges without a gap of more than 2.5 usual steps. */
export function splitRuns(timesMs: Float64Array): readonly (readonly [from: number, to: number])[] {
  if (timesMs.length === 0) return [];
  const longestMs = 2.5 * usualStep(timesMs);
  const runs: [number, number][] = [];
  let from = 0;
  for (let index = 1; index < timesMs.length; index += 1) {
    if ((timesMs[index] ?? 0) - (timesMs[index - 1] ?? 0) <= longestMs) continue;
    runs.push([from, index]);
    from = index;
  }
  runs.push([from, timesMs.length]);
  return runs;
}

function usualStep(timesMs: Float64Array): number {
  const steps = timesMs.slice(1).map((time, index) => time - (timesMs[index] ?? time));
  return steps.sort()[steps.length >> 1] ?? Number.POSITIVE_INFINITY;
}

function linePath(timesMs: Float64Array, values: Float64Array, from: number, to: number, x: Scale, y: Scale): string {
  let path = "";
  for (let index = from; index < to; index += 1) {
    path += `${index === from ? "M" : "L"}${point(x(timesMs[index] ?? 0), y(values[index] ?? 0))}`;
  }
  // A single sample is a dot, not nothing.
  return to - from === 1 ? `${path}h0.01` : path;
}

function bandPath(
  data: Pick<SparklineProps, "timesMs" | "minima" | "maxima">,
  from: number,
  to: number,
  x: Scale,
  y: Scale,
): string {
  let path = linePath(data.timesMs, data.maxima, from, to, x, y);
  for (let index = to - 1; index >= from; index -= 1) {
    path += `L${point(x(data.timesMs[index] ?? 0), y(data.minima[index] ?? 0))}`;
  }
  return `${path}Z`;
}

function point(x: number, y: number): string {
  return `${x.toFixed(1)},${y.toFixed(1)}`;
}
