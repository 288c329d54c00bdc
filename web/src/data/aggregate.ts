// Aggregates metrics over groups of units: by workload, by node. Pure; units without a sample are not counted.

import type { NameColumn, NumberColumn } from "../api/columns.ts";

export interface Aggregate {
  readonly sampled: number;
  readonly sum: number;
  readonly mean: number;
  readonly min: number;
  readonly max: number;
}

/** One aggregate per name that has at least one sample. */
export function aggregateBy(groups: NameColumn, values: NumberColumn | null): ReadonlyMap<string, Aggregate> {
  const result = new Map<string, Aggregate>();
  if (values === null) return result;
  const size = groups.names.length;
  const sampled = new Uint32Array(size);
  const sum = new Float64Array(size);
  const min = new Float64Array(size).fill(Number.POSITIVE_INFINITY);
  const max = new Float64Array(size).fill(Number.NEGATIVE_INFINITY);
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row] ?? Number.NaN;
    if (Number.isNaN(value)) continue;
    const code = groups.codes[row] ?? 0;
    sampled[code] = (sampled[code] ?? 0) + 1;
    sum[code] = (sum[code] ?? 0) + value;
    min[code] = Math.min(min[code] ?? value, value);
    max[code] = Math.max(max[code] ?? value, value);
  }
  groups.names.forEach((name, code) => {
    const count = sampled[code] ?? 0;
    if (name === null || count === 0) return;
    const total = sum[code] ?? 0;
    result.set(name, { sampled: count, sum: total, mean: total / count, min: min[code] ?? 0, max: max[code] ?? 0 });
  });
  return result;
}

/** The rows of each group, in order. */
export function groupRows(groups: NameColumn): ReadonlyMap<string, readonly number[]> {
  const rows: number[][] = groups.names.map(() => []);
  for (let row = 0; row < groups.codes.length; row += 1) rows[groups.codes[row] ?? 0]?.push(row);
  const result = new Map<string, readonly number[]>();
  groups.names.forEach((name, code) => {
    const members = rows[code] ?? [];
    if (name !== null && members.length > 0) result.set(name, members);
  });
  return result;
}
