// Reduces many lines to one band: at each time the mean, minimum and maximum over units.

import type { SeriesLine } from "../api/series.ts";

export interface Band {
  readonly metric: string;
  readonly units: number;
  readonly timesMs: Float64Array;
  readonly means: Float64Array;
  readonly minima: Float64Array;
  readonly maxima: Float64Array;
}

export function computeBands(lines: readonly SeriesLine[]): readonly Band[] {
  const byMetric = Map.groupBy(lines, (line) => line.metric);
  return [...byMetric].map(([metric, members]) => computeBand(metric, members));
}

function computeBand(metric: string, lines: readonly SeriesLine[]): Band {
  const times = new Set<number>();
  for (const line of lines) for (const time of line.timesMs) times.add(time);
  const timesMs = Float64Array.from(times).sort();
  const slotOf = new Map<number, number>();
  timesMs.forEach((time, slot) => {
    slotOf.set(time, slot);
  });

  const counts = new Uint32Array(timesMs.length);
  const means = new Float64Array(timesMs.length);
  const minima = new Float64Array(timesMs.length).fill(Number.POSITIVE_INFINITY);
  const maxima = new Float64Array(timesMs.length).fill(Number.NEGATIVE_INFINITY);
  for (const line of lines) {
    for (let index = 0; index < line.timesMs.length; index += 1) {
      const slot = slotOf.get(line.timesMs[index] ?? Number.NaN);
      const value = line.values[index] ?? Number.NaN;
      if (slot === undefined || Number.isNaN(value)) continue;
      counts[slot] = (counts[slot] ?? 0) + 1;
      means[slot] = (means[slot] ?? 0) + value;
      minima[slot] = Math.min(minima[slot] ?? value, line.minima[index] ?? value);
      maxima[slot] = Math.max(maxima[slot] ?? value, line.maxima[index] ?? value);
    }
  }
  for (let slot = 0; slot < means.length; slot += 1) means[slot] = (means[slot] ?? 0) / (counts[slot] ?? 1);
  return { metric, units: lines.length, timesMs, means, minima, maxima };
}
