// Held and wasted GPU-hours by unit and workload.

import { type Columns, emptyNames, type NameColumn } from "./columns.ts";

export interface UnitWaste {
  readonly rowCount: number;
  readonly unit: NameColumn;
  readonly workload: NameColumn;
  readonly heldHours: Float64Array;
  /** NaN: not measured. */
  readonly wastedHours: Float64Array;
}

export function toUnitWaste(columns: Columns): UnitWaste {
  const { rowCount } = columns;
  const names = (column: string) => columns.findNames(column) ?? emptyNames(rowCount);
  const numbers = (column: string) => columns.findNumbers(column) ?? new Float64Array(rowCount).fill(Number.NaN);
  return {
    rowCount,
    unit: names("unit"),
    workload: names("workload"),
    heldHours: numbers("held_gpu_hours"),
    wastedHours: numbers("wasted_gpu_hours"),
  };
}
