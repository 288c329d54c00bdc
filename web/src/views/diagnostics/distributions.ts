// Statistics of histograms: quantiles to within a bin. Pure.

import type { Histograms } from "../../api/diagnosis-client.ts";

/** Interpolated within its bin; null without values. */
export function findQuantile(counts: ArrayLike<number>, low: number, high: number, share: number): number | null {
  let total = 0;
  for (let bin = 0; bin < counts.length; bin += 1) total += counts[bin] ?? 0;
  if (total === 0) return null;
  const target = share * total;
  let cumulative = 0;
  const width = (high - low) / counts.length;
  for (let bin = 0; bin < counts.length; bin += 1) {
    const count = counts[bin] ?? 0;
    cumulative += count;
    if (cumulative >= target && count > 0) return low + (bin + 1 - (cumulative - target) / count) * width;
  }
  return high;
}

export interface UnitStatistics {
  readonly samples: number;
  readonly p5: number | null;
  readonly median: number | null;
  readonly p95: number | null;
}

export function describeUnit({ counts, low, high }: Histograms, unit: string): UnitStatistics {
  const bins = counts.get(unit) ?? [];
  return {
    samples: Array.from(bins).reduce((sum, count) => sum + count, 0),
    p5: findQuantile(bins, low, high, 0.05),
    median: findQuantile(bins, low, high, 0.5),
    p95: findQuantile(bins, low, high, 0.95),
  };
}

/** Heights 0–1 on a common axis: 1 is the 98th percentile of the tallest bars. */
export function scaleBars({ counts }: Histograms): ReadonlyMap<string, Float64Array> {
  const shares = new Map<string, Float64Array>();
  const peaks: number[] = [];
  for (const [unit, bins] of counts) {
    const total = bins.reduce((sum, count) => sum + count, 0);
    if (total === 0) continue;
    const share = bins.map((count) => count / total);
    peaks.push(Math.max(...share));
    shares.set(unit, share);
  }
  peaks.sort((a, b) => a - b);
  // Square roots: a plot with all its values in one bin would make the others flat.
  const top = Math.sqrt(peaks[Math.floor(peaks.length * 0.98)] ?? 1) || 1;
  for (const [unit, share] of shares)
    shares.set(
      unit,
      share.map((value) => Math.min(1, Math.sqrt(value) / top)),
    );
  return shares;
}
