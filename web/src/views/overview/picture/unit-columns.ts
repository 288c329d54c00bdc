// What a view needs to know of units to lay them out, and no more: it is copied to a worker.

import { emptyNames } from "../../../api/columns.ts";
import { readAttribute as readUnitAttribute } from "../../../data/unit-attributes.ts";
import type { Units } from "../../../data/units.ts";
import type { AttributeValues, UnitColumns } from "../../../layout/attributes.ts";
import { attributeOf, type View } from "../../../layout/grammar.ts";
import { findAttribute } from "../../../state/attributes.ts";

export function pickColumns(units: Units, view: View): UnitColumns {
  // By the names of units the next layout knows them again.
  const names = new Set(["unit", "unit_state", ...listAttributes(view)]);
  const attributes = new Map([...names].map((name) => [name, readAttribute(units, name)] as const));
  return { rowCount: units.snapshot.rowCount, attributes };
}

export function listAttributes({ layers, mark, units }: View): readonly string[] {
  const names = layers.flatMap((layer) => [attributeOf(layer), layer.sort.of]);
  if (units === "waiting") names.push("workload");
  return [...names, mark.sort?.by ?? null].filter((name) => name !== null);
}

/** What nobody sent is missing for every unit. */
export function readAttribute(units: Units, name: string): AttributeValues {
  const attribute = findAttribute(name);
  return attribute ? readUnitAttribute(units, attribute.name) : emptyNames(units.snapshot.rowCount);
}
