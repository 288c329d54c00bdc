// Formats the value of a unit's attribute.

import { nameAt, numberAt } from "../../../../api/columns.ts";
import { MISSING } from "../../../../base/format.ts";
import { readNames, readNumbers } from "../../../../data/unit-attributes.ts";
import type { Units } from "../../../../data/units.ts";
import type { Attribute } from "../../../../state/attributes.ts";
import { formatNumber } from "../../filter/number-words.ts";

export function describeValue(units: Units, row: number, attribute: Attribute): string {
  if (attribute.kind === "number") return formatNumber(numberAt(readNumbers(units, attribute), row), attribute.unit);
  const name = nameAt(readNames(units, attribute.name), row);
  // A workload is better known by its own name than by its number.
  const title = attribute.name === "workload" ? nameAt(readNames(units, "workload_name"), row) : null;
  return title ?? name ?? MISSING;
}
