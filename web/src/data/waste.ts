// GPU-hours wasted by the current holders of units, aligned with the rows of a snapshot, so that any group can be
// summed.

import { nameAt } from "../api/columns.ts";
import type { Snapshot } from "../api/snapshot.ts";
import type { UnitWaste } from "../api/unit-waste.ts";
import type { Loadable } from "../base/loadable.ts";
import { useVersionedQuery } from "./versioned-query.ts";

export const WASTE_HOURS = 24;
/** The server evaluates whole steps of ten minutes. */
const REFRESH_MS = 600_000;

/** By row; NaN: not allocated, or not measured. */
export interface RowWaste {
  readonly heldHours: Float32Array;
  readonly wastedHours: Float32Array;
}

export function useUnitWaste(enabled: boolean): Loadable<UnitWaste> {
  return useVersionedQuery({
    key: ["waste", "units", WASTE_HOURS],
    follows: "nothing",
    everyMs: REFRESH_MS,
    enabled,
    ask: (client, signal) => client.unitWaste(WASTE_HOURS, signal),
  });
}

const aligned = new WeakMap<UnitWaste, { readonly snapshot: Snapshot; readonly rows: RowWaste }>();

/** Counts only the hours of the workload that holds the unit now. */
export function alignWaste(snapshot: Snapshot, waste: UnitWaste): RowWaste {
  const cached = aligned.get(waste);
  if (cached?.snapshot === snapshot) return cached.rows;
  const unit = snapshot.names("unit");
  const workload = snapshot.names("workload");
  const rowOf = new Map<string, number>();
  unit.codes.forEach((code, row) => {
    const name = unit.names[code];
    if (name) rowOf.set(name, row);
  });
  const heldHours = new Float32Array(snapshot.rowCount).fill(Number.NaN);
  const wastedHours = new Float32Array(snapshot.rowCount).fill(Number.NaN);
  for (let index = 0; index < waste.rowCount; index += 1) {
    const row = rowOf.get(nameAt(waste.unit, index) ?? "");
    if (row === undefined || nameAt(workload, row) !== nameAt(waste.workload, index)) continue;
    heldHours[row] = waste.heldHours[index] ?? Number.NaN;
    wastedHours[row] = waste.wastedHours[index] ?? Number.NaN;
  }
  const rows = { heldHours, wastedHours };
  aligned.set(waste, { snapshot, rows });
  return rows;
}
