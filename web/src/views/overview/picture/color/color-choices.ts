// What units can be colored by: the words for it, its unit, and where its values come from.

import type { NameColumn } from "../../../../api/columns.ts";
import type { UnitNameColumn } from "../../../../api/snapshot.ts";
import type { Quantity } from "../../../../base/format.ts";
import { findMetric, type UnitMetric, type Units } from "../../../../data/units.ts";
import type { ColorName } from "../../../../state/screen.ts";

export interface QuantityChoice {
  readonly kind: "quantity";
  readonly title: string;
  readonly unit: Quantity;
  /** The ends of the ramp where they are not those of the values: a ratio always goes from 0 to 1. */
  readonly min: number | null;
  readonly max: number | null;
}

export interface CategoryChoice {
  readonly kind: "category";
  readonly title: string;
  readonly column: UnitNameColumn;
}

export type ColorChoice = QuantityChoice | CategoryChoice;

function quantity(title: string, unit: Quantity, min: number | null, max: number | null): QuantityChoice {
  return { kind: "quantity", title, unit, min, max };
}

function category(title: string, column: UnitNameColumn): CategoryChoice {
  return { kind: "category", title, column };
}

export const COLOR_CHOICES: Readonly<Record<ColorName, ColorChoice>> = {
  gpu_util_ratio: quantity("GPU utilisation", "ratio", 0, 1),
  sm_active_ratio: quantity("SM active", "ratio", 0, 1),
  tensor_active_ratio: quantity("Tensor active", "ratio", 0, 1),
  dram_active_ratio: quantity("DRAM active", "ratio", 0, 1),
  power_watts: quantity("Power", "watts", 0, null),
  memory_used_bytes: quantity("Memory used", "bytes", 0, null),
  gpu_temperature_celsius: quantity("Temperature", "celsius", null, null),
  wait_s: quantity("Waiting time", "seconds", 0, null),
  unit_state: category("State", "unit_state"),
  workload: category("Workload", "workload"),
  user: category("User", "user"),
  project: category("Project", "project"),
  partition: category("Partition", "partition"),
  machine_type: category("Machine type", "machine_type"),
};

/** The values of a quantity by row, NaN where there is none; null where none was sampled at all. */
export function readQuantity(units: Units, name: ColorName): Float32Array | null {
  return name === "wait_s" ? computeWaits(units) : findMetric(units, name as UnitMetric);
}

/** Seconds: until the start, or until the newest sample for those who still wait. */
export function computeWaits({ snapshot, tick }: Units): Float32Array {
  const submitted = snapshot.numbers("submitted_at");
  const started = snapshot.numbers("started_at");
  const now = tick?.sampledAt ?? Number.NaN;
  return new Float32Array(snapshot.rowCount).map((_, row) => {
    const end = started[row] ?? Number.NaN;
    return Math.max(0, ((Number.isNaN(end) ? now : end) - (submitted[row] ?? Number.NaN)) / 1000);
  });
}

/** What a unit is called by: the workload's own name rather than its number. */
export function titleOf(units: Units, choice: CategoryChoice): (row: number) => string | null {
  const column: NameColumn = units.snapshot.names(choice.column === "workload" ? "workload_name" : choice.column);
  const fallback = units.snapshot.names(choice.column);
  return (row) => column.names[column.codes[row] ?? 0] ?? fallback.names[fallback.codes[row] ?? 0] ?? null;
}
