// Totals of units: counts, hours, utilization, power, waste. Pure; null: no unit has a value.

import { type NameColumn, numberAt } from "../../../api/columns.ts";
import { UNIT_STATES, type UnitNameColumn, type UnitState } from "../../../api/snapshot.ts";
import { HOUR_MS } from "../../../base/durations.ts";
import { findMetric, type Units } from "../../../data/units.ts";
import type { RowWaste } from "../../../data/waste.ts";
import { toUnitState } from "../words.ts";

export interface UnitTotals {
  readonly units: number;
  /** Those that exist. */
  readonly gpus: number;
  readonly states: Readonly<Record<UnitState, number>>;
  readonly workloads: number;
  readonly users: number;
  readonly nodes: number;
  /** Mean over the allocated units that have a sample. */
  readonly utilRatio: number | null;
  readonly powerWatts: number | null;
  readonly powerLimitWatts: number | null;
  /** What the present workloads have held these units for, since they started. */
  readonly heldHours: number | null;
  /** Of the last hours that waste is judged over. */
  readonly recentHours: number | null;
  readonly wastedHours: number | null;
  readonly longestWaitS: number | null;
}

export function computeTotals(
  units: Units,
  rows: readonly number[],
  nowMs: number,
  waste: RowWaste | null,
): UnitTotals {
  const { snapshot } = units;
  const states = countStates(snapshot.names("unit_state"), rows);
  const started = snapshot.numbers("started_at");
  const submitted = snapshot.numbers("submitted_at");
  const isHeld = isState(snapshot.names("unit_state"), "allocated");
  const isRequested = isState(snapshot.names("unit_state"), "requested");
  const util = sumRows(findMetric(units, "gpu_util_ratio"), rows, isHeld);
  const held = sumRows(started, rows, isHeld);
  const real = (row: number) => !isRequested(row);
  const wait = greatest(rows, (row) => (isRequested(row) ? nowMs - (submitted[row] ?? Number.NaN) : Number.NaN));
  return {
    units: rows.length,
    gpus: rows.length - states.requested,
    states,
    workloads: countDistinct(snapshot.names("workload"), rows),
    users: countDistinct(snapshot.names("user"), rows),
    nodes: countDistinct(snapshot.names("node"), rows),
    utilRatio: util && util.sum / util.count,
    powerWatts: sumRows(findMetric(units, "power_watts"), rows, real)?.sum ?? null,
    powerLimitWatts: sumRows(snapshot.numbers("power_limit_watts"), rows, real)?.sum ?? null,
    heldHours: held && Math.max(0, (held.count * nowMs - held.sum) / HOUR_MS),
    recentHours: sumRows(waste?.heldHours ?? null, rows)?.sum ?? null,
    wastedHours: sumRows(waste?.wastedHours ?? null, rows)?.sum ?? null,
    longestWaitS: wait === null ? null : wait / 1000,
  };
}

export interface Share {
  readonly key: string;
  readonly title: string;
  readonly units: number;
}

/** The names that most of the units have, most first. */
export function listLargest(
  { snapshot }: Units,
  rows: readonly number[],
  column: UnitNameColumn,
  titles: UnitNameColumn,
  most: number,
): readonly Share[] {
  const { codes, names } = snapshot.names(column);
  const title = snapshot.names(titles);
  const counts = new Map<number, { units: number; first: number }>();
  for (const row of rows) {
    const code = codes[row] ?? 0;
    const entry = counts.get(code);
    if (entry) entry.units += 1;
    else counts.set(code, { units: 1, first: row });
  }
  counts.delete(0);
  return [...counts]
    .map(([code, { units, first }]) => {
      const key = names[code] ?? "";
      return { key, title: title.names[title.codes[first] ?? 0] ?? key, units };
    })
    .sort((a, b) => b.units - a.units || (a.key < b.key ? -1 : 1))
    .slice(0, most);
}

function countStates({ codes, names }: NameColumn, rows: readonly number[]): Readonly<Record<UnitState, number>> {
  const byCode = names.map((name) => toUnitState(name));
  const counts = Object.fromEntries(UNIT_STATES.map((state) => [state, 0])) as Record<UnitState, number>;
  for (const row of rows) counts[byCode[codes[row] ?? 0] ?? "stale"] += 1;
  return counts;
}

function isState({ codes, names }: NameColumn, state: UnitState): (row: number) => boolean {
  const code = names.indexOf(state);
  return (row) => codes[row] === code;
}

function countDistinct({ codes }: NameColumn, rows: readonly number[]): number {
  const distinct = new Set<number>();
  for (const row of rows) distinct.add(codes[row] ?? 0);
  distinct.delete(0);
  return distinct.size;
}

function sumRows(
  values: Float32Array | Float64Array | null,
  rows: readonly number[],
  counts: (row: number) => boolean = () => true,
): { readonly sum: number; readonly count: number } | null {
  if (values === null) return null;
  let sum = 0;
  let count = 0;
  for (const row of rows) {
    const value = numberAt(values, row);
    if (value === null || !counts(row)) continue;
    sum += value;
    count += 1;
  }
  return count === 0 ? null : { sum, count };
}

function greatest(rows: readonly number[], read: (row: number) => number): number | null {
  let most = Number.NEGATIVE_INFINITY;
  for (const row of rows) {
    const value = read(row);
    if (value > most) most = value;
  }
  return Number.isFinite(most) ? most : null;
}
