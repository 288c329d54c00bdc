// What the units' present holders wasted lately, in the rows of a snapshot: any group of units can sum it.

import { nameAt } from "../api/columns.ts";
import type { Snapshot } from "../api/snapshot.ts";
import type { UnitWaste } from "../api/unit-waste.ts";
import type { Loadable } from "../base/loadable.ts";
import { useVersionedQuery } from "./versioned-query.ts";

export const WASTE_HOURS = 24;
/** The server judges whole steps of ten minutes. */
const REFRESH_MS = 600_000;

/** By row; NaN where nobody holds the unit or nothing was measured. */
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

/** Only what the workload that is now on a unit did there counts: a group is what it is now. */
export function alignWaste(snapshot: Snapshot, waste: UnitWaste): RowWaste {
  const known = aligned.get(waste);
  if (known?.snapshot === snapshot) return known.rows;
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
