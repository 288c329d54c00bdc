// Applies a typed comparison such as `user=ada` or `util<20%` to all rows, column by column.

import { type Comparison, matchesComparison } from "../../../base/search.ts";
import { type AttributeName, findAttribute } from "../../../state/attributes.ts";
import { type FilterColumn, type FilterColumns, isLists, isNumbers, type NamedColumn } from "./filter-columns.ts";

/** Short names, as the headings of the tables have them; the first that the rows have. */
const SHORT: Readonly<Record<string, readonly AttributeName[]>> = {
  state: ["unit_state", "workload_state", "node_state"],
  name: ["workload_name"],
  type: ["machine_type"],
  gpus: ["gpus_requested"],
  util: ["gpu_util_ratio"],
  power: ["power_watts"],
  memory: ["memory_used_bytes"],
  temperature: ["gpu_temperature_celsius"],
  waited: ["wait_s"],
  running: ["run_s"],
  rule: ["violations"],
};

/** Clears the marks of rows that do not match; of all rows if the name is unknown. */
export function applyComparison(columns: FilterColumns, comparison: Comparison, passes: Uint8Array): void {
  const column = findColumn(columns, comparison.name);
  if (column === null) passes.fill(0);
  else if (isNumbers(column)) {
    for (let row = 0; row < passes.length; row += 1) {
      const value = column[row] ?? Number.NaN;
      if (Number.isNaN(value) || !matchesComparison(value, comparison)) passes[row] = 0;
    }
  } else applyToNames(column, comparison, passes);
}

function findColumn(columns: FilterColumns, name: string): FilterColumn | null {
  const exactName = findAttribute(name)?.name;
  const candidates = exactName === undefined ? (SHORT[name] ?? []) : [exactName];
  const attribute = candidates.find((attribute) => columns.has(attribute));
  return attribute === undefined ? null : columns.find(attribute);
}

function applyToNames(column: NamedColumn, comparison: Comparison, passes: Uint8Array): void {
  const isMeant = column.names.map((name) => matchesComparison(name, comparison));
  const { codes } = column;
  if (!isLists(column)) {
    for (let row = 0; row < passes.length; row += 1) if (!isMeant[codes[row] ?? 0]) passes[row] = 0;
    return;
  }
  for (let row = 0; row < passes.length; row += 1) {
    const rowCodes = codes.subarray(column.starts[row] ?? 0, column.starts[row + 1] ?? 0);
    if (!rowCodes.some((code) => isMeant[code])) passes[row] = 0;
  }
}
