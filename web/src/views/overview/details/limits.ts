// The limits of metrics: power limit and memory size of GPUs, if all units have the same.

import type { UnitNumberColumn } from "../../../api/snapshot.ts";
import type { Units } from "../../../data/units.ts";

export type Limits = Readonly<Record<string, number | null>>;

export function findLimits({ snapshot }: Units, rows: readonly number[]): Limits {
  const common = (column: UnitNumberColumn): number | null => {
    const numbers = snapshot.numbers(column);
    const first = numbers[rows[0] ?? -1] ?? Number.NaN;
    return rows.every((row) => numbers[row] === first) && !Number.isNaN(first) ? first : null;
  };
  return { power_watts: common("power_limit_watts"), memory_used_bytes: common("memory_bytes") };
}
