// Quantities of a run: cost, speed, results of its script, and numeric params. Charts and tables use them as columns.

import type { RunRow } from "../../api/generated.ts";
import { formatQuantity, isKnown, MISSING, type Quantity } from "../../base/format.ts";

export interface RunQuantity {
  readonly key: string;
  readonly title: string;
  /** Null: a number of the script, without a unit. */
  readonly unit: Quantity | null;
  readonly tip?: string;
  of(row: RunRow): number | null;
}

const STANDARD_QUANTITIES: readonly RunQuantity[] = [
  { key: "running", title: "Run time", unit: "seconds", of: ({ times }) => times.running_s },
  {
    key: "throughput",
    title: "Throughput",
    unit: null,
    tip: "Work per second: samples if the script reports them, else steps",
    of: ({ work }) => work?.per_second ?? null,
  },
  { key: "energy", title: "GPU energy", unit: "joules", of: ({ energy }) => energy?.joules ?? null },
  {
    key: "joules_per_work",
    title: "Joules per work",
    unit: "joules",
    tip: "Per sample if the script reports them, else per step",
    of: ({ joules_per_work }) => joules_per_work,
  },
  { key: "power", title: "Power, mean", unit: "watts", of: ({ power_watts }) => power_watts },
  { key: "gpu_util", title: "GPU utilization", unit: "ratio", of: ({ gpu_util_ratio }) => gpu_util_ratio },
  {
    key: "slowdown",
    title: "Slowdown",
    unit: null,
    tip: "1.3: the same work takes 30 % longer than alone on the same GPU type",
    of: ({ slowdown }) => slowdown?.ratio ?? null,
  },
  {
    key: "memory_peak",
    title: "GPU memory, peak",
    unit: "bytes",
    of: ({ memory_peak_bytes }) => memory_peak_bytes,
  },
  { key: "cpu_cores", title: "CPU cores, mean", unit: null, of: ({ cpu_cores }) => cpu_cores },
  {
    key: "process_memory",
    title: "Memory, peak",
    unit: "bytes",
    of: ({ process_memory_peak_bytes }) => process_memory_peak_bytes,
  },
];

/** Quantities that at least one run has, those of the script last. */
export function listQuantities(rows: readonly RunRow[]): readonly RunQuantity[] {
  const results = namesOf(rows, ({ results }) => results);
  const params = namesOf(rows, ({ params }) => params).filter((name) =>
    rows.some((row) => numberOf(row.params[name]) !== null),
  );
  return [
    ...STANDARD_QUANTITIES.map((quantity) => nameWork(quantity, rows)),
    ...results.map((name) => ({
      key: `result:${name}`,
      title: name,
      unit: null,
      tip: "Last value reported by the script",
      of: (row: RunRow) => row.results[name] ?? null,
    })),
    ...params.map((name) => ({
      key: `param:${name}`,
      title: name,
      unit: null,
      tip: "Param of the run",
      of: (row: RunRow) => numberOf(row.params[name]),
    })),
  ].filter(({ of }) => rows.some((row) => isKnown(of(row))));
}

/** The unit of work in the titles of what is per work, if all runs count the same: “Throughput, samples/s”. */
function nameWork(quantity: RunQuantity, rows: readonly RunRow[]): RunQuantity {
  const units = new Set(rows.flatMap(({ work }) => (work ? [work.unit] : [])));
  const [unit = "work"] = units.size === 1 ? units : [];
  if (quantity.key === "throughput") return { ...quantity, title: `Throughput, ${unit}/s` };
  if (quantity.key === "joules_per_work") return { ...quantity, title: `Joules per ${unit.replace(/s$/, "")}` };
  return quantity;
}

function namesOf(rows: readonly RunRow[], record: (row: RunRow) => Readonly<Record<string, unknown>>): string[] {
  return [...new Set(rows.flatMap((row) => Object.keys(record(row))))].sort();
}

function numberOf(text: string | undefined): number | null {
  const value = text === undefined || text.trim() === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}

const plain = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });

export function formatNumber(value: number | null | undefined, unit: Quantity | null): string {
  if (!isKnown(value)) return MISSING;
  if (unit === "joules" && Math.abs(value) < 1000) return `${plain.format(value)} J`;
  return unit === null ? plain.format(value) : formatQuantity(value, unit);
}

export interface Spread {
  readonly mean: number;
  /** 95 % confidence interval of the mean; null: fewer than two runs. */
  readonly low: number | null;
  readonly high: number | null;
  readonly count: number;
}

/** Student's t at 97.5 %, by degrees of freedom; beyond the table, the normal quantile is used. */
const T_975 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/** The mean over runs that have the quantity, with its interval from two runs on. */
export function computeSpread(rows: readonly RunRow[], quantity: RunQuantity): Spread | null {
  const values = rows.map((row) => quantity.of(row)).filter(isKnown);
  if (values.length === 0) return null;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  if (values.length === 1) return { mean, low: null, high: null, count: 1 };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  const half = (T_975[values.length - 2] ?? 1.96) * Math.sqrt(variance / values.length);
  return { mean, low: mean - half, high: mean + half, count: values.length };
}
