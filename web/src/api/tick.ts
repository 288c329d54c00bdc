// The newest value of some metrics for every unit, quantized to 16 bits on the wire, in the row order of a snapshot.

import type { Columns } from "./columns.ts";

/** The code of "no sample". */
const MISSING_CODE = 65_535;
const LARGEST_CODE = 65_534;

export type Scales = Readonly<Record<string, readonly [lower: number, upper: number]>>;

export interface Tick {
  readonly inventoryVersion: number;
  readonly tickVersion: number;
  /** Unix ms; null if there are no samples yet. */
  readonly sampledAt: number | null;
  readonly rowCount: number;
  /** Values in canonical units, NaN if missing; null for a metric that was not requested. */
  find(metric: string): Float32Array | null;
}

export function toTick(
  columns: Columns,
  scales: Scales,
  versions: { inventoryVersion: number; tickVersion: number; sampledAt: number | null },
): Tick {
  const values = new Map<string, Float32Array>();
  for (const [metric, [lower, upper]] of Object.entries(scales)) {
    const codes = columns.findNumbers(metric);
    if (codes) values.set(metric, dequantize(codes, lower, upper));
  }
  return { ...versions, rowCount: columns.rowCount, find: (metric) => values.get(metric) ?? null };
}

function dequantize(codes: Float64Array, lower: number, upper: number): Float32Array {
  const step = (upper - lower) / LARGEST_CODE;
  const values = new Float32Array(codes.length);
  for (let row = 0; row < codes.length; row += 1) {
    const code = codes[row] ?? MISSING_CODE;
    values[row] = code === MISSING_CODE || Number.isNaN(code) ? Number.NaN : lower + code * step;
  }
  return values;
}
