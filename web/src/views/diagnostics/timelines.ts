// Resamples lines on a time grid, summarizes many lines, and merges times to spans. Pure.

import type { SeriesLine } from "../../api/series.ts";
import type { TimeRange } from "../../charts/line-chart.tsx";

/** Means of the values in `steps` equal parts of the time; NaN where there are none. */
export function toGrid(line: SeriesLine, startMs: number, endMs: number, steps: number): Float64Array {
  const sums = new Float64Array(steps);
  const counts = new Uint32Array(steps);
  const { timesMs, values } = line;
  for (let at = 0; at < timesMs.length; at += 1) {
    const value = values[at] ?? Number.NaN;
    if (Number.isNaN(value)) continue;
    const step = Math.floor((((timesMs[at] ?? 0) - startMs) / Math.max(1, endMs - startMs)) * steps);
    if (step < 0 || step >= steps) continue;
    sums[step] = (sums[step] ?? 0) + value;
    counts[step] = (counts[step] ?? 0) + 1;
  }
  return sums.map((sum, step) => (counts[step] ? sum / (counts[step] ?? 1) : Number.NaN));
}

const MAX_GAP = 2;

/** Interpolates over gaps of up to `MAX_GAP` steps, which fell between samples. */
export function fillGaps(grid: Float64Array): Float64Array {
  const filled = grid.slice();
  let last = -1;
  for (let step = 0; step < grid.length; step += 1) {
    const value = grid[step] ?? Number.NaN;
    if (Number.isNaN(value)) continue;
    const gap = step - last - 1;
    if (last >= 0 && gap > 0 && gap <= MAX_GAP) {
      const from = grid[last] ?? value;
      for (let offset = 1; offset <= gap; offset += 1)
        filled[last + offset] = from + ((value - from) * offset) / (gap + 1);
    }
    last = step;
  }
  return filled;
}

export interface Summary {
  readonly timesMs: Float64Array;
  readonly median: Float64Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
}

/** Median and 5–95 % range of several lines at each step; steps without values are dropped. */
export function summarize(lines: readonly SeriesLine[], startMs: number, endMs: number, steps: number): Summary {
  const grids = lines.map((line) => toGrid(line, startMs, endMs, steps));
  const timesMs: number[] = [];
  const median: number[] = [];
  const low: number[] = [];
  const high: number[] = [];
  for (let step = 0; step < steps; step += 1) {
    const values = grids.map((grid) => grid[step] ?? Number.NaN).filter((value) => !Number.isNaN(value));
    if (values.length === 0) continue;
    values.sort((a, b) => a - b);
    const at = (share: number) => values[Math.round(share * (values.length - 1))] ?? 0;
    timesMs.push(startMs + ((step + 0.5) / steps) * (endMs - startMs));
    median.push(at(0.5));
    low.push(at(0.05));
    high.push(at(0.95));
  }
  return {
    timesMs: Float64Array.from(timesMs),
    median: Float64Array.from(median),
    low: Float64Array.from(low),
    high: Float64Array.from(high),
  };
}

/** The server's summary of a cluster: `c0:median`, `c0:p5`, `c0:p95`, each downsampled at its own times. */
export function findBand(lines: readonly SeriesLine[], label: number): Summary | null {
  const [median, low, high] = ["median", "p5", "p95"].map((level) =>
    lines.find(({ unit }) => unit === `c${label}:${level}`),
  );
  if (!median || !low || !high) return null;
  const timesMs = Float64Array.from(new Set([...median.timesMs, ...low.timesMs, ...high.timesMs])).sort();
  const at = (line: SeriesLine) => interpolate(line, timesMs);
  return { timesMs, median: at(median), low: at(low), high: at(high) };
}

/** Interpolates a line at sorted times; NaN before its first point, after its last and within gaps. */
export function interpolate(
  { timesMs, values }: Pick<SeriesLine, "timesMs" | "values">,
  at: Float64Array,
): Float64Array {
  let next = 0;
  return at.map((time) => {
    while (next < timesMs.length && (timesMs[next] ?? 0) < time) next += 1;
    const [before, after] = [timesMs[next - 1] ?? Number.NaN, timesMs[next] ?? Number.NaN];
    if (after === time) return values[next] ?? Number.NaN;
    const share = (time - before) / (after - before);
    return (values[next - 1] ?? Number.NaN) * (1 - share) + (values[next] ?? Number.NaN) * share;
  });
}

/** The value nearest to a time; null where none is within `withinMs`. */
export function valueAt(timesMs: Float64Array, values: Float64Array, atMs: number, withinMs: number): number | null {
  let [from, to] = [0, timesMs.length - 1];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((timesMs[middle] ?? 0) < atMs) from = middle + 1;
    else to = middle;
  }
  const isEarlier = from > 0 && atMs - (timesMs[from - 1] ?? 0) < (timesMs[from] ?? 0) - atMs;
  const at = isEarlier ? from - 1 : from;
  const value = values[at];
  const isNear = Math.abs((timesMs[at] ?? Number.POSITIVE_INFINITY) - atMs) <= withinMs;
  return value === undefined || Number.isNaN(value) || !isNear ? null : value;
}

/** Merges times that are at most 1 % of the range (or a minute) apart to spans. */
export function mergeTimes(timesMs: Iterable<number>, rangeMs: number): readonly TimeRange[] {
  const sorted = [...new Set(timesMs)].sort((a, b) => a - b);
  const gapMs = Math.max(60_000, rangeMs / 100);
  const spans: { fromMs: number; toMs: number }[] = [];
  for (const time of sorted) {
    const last = spans.at(-1);
    if (last && time - last.toMs <= gapMs) last.toMs = time;
    else spans.push({ fromMs: time, toMs: time });
  }
  return spans;
}

/** The minimum and maximum of several lines, extended to 0 where that is near. */
export function findDomain(lines: readonly { readonly values: Float64Array }[], unit: string): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { values } of lines) {
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (unit === "ratio" && high <= 1.001) return [0, 1];
  if (low > high) return [0, 1];
  if (low >= 0 && low < high * 0.75) low = 0;
  return low === high ? [low - 1, high + 1] : [low, high];
}
