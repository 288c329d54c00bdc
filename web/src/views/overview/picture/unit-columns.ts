// What a view needs to know of units to lay them out, and no more: it is copied to a worker.

import type { UnitNameColumn, UnitNumberColumn } from "../../../api/snapshot.ts";
import type { Units } from "../../../data/units.ts";
import type { AttributeValues, UnitColumns } from "../../../layout/attributes.ts";
import { attributeOf, type View } from "../../../layout/grammar.ts";
import { findAttribute } from "../../../state/attributes.ts";
import { computeWaits } from "./color/color-choices.ts";

export function pickColumns(units: Units, view: View): UnitColumns {
  const names = new Set(["unit_state", ...listAttributes(view)]);
  const attributes = new Map([...names].map((name) => [name, readAttribute(units, name)] as const));
  return { rowCount: units.snapshot.rowCount, attributes };
}

export function listAttributes({ layers, mark }: View): readonly string[] {
  const names = layers.flatMap((layer) => [attributeOf(layer), layer.sort.of]);
  return [...names, mark.sort?.by ?? null].filter((name) => name !== null);
}

/** What nobody sent is missing for every unit. */
export function readAttribute(units: Units, name: string): AttributeValues {
  const { snapshot, tick } = units;
  const attribute = findAttribute(name);
  if (attribute === null || attribute.kind === "name") return snapshot.names(name as UnitNameColumn);
  if (name === "wait_s") return computeWaits(units);
  if (attribute.metric === null) return snapshot.numbers(name as UnitNumberColumn);
  return tick?.find(name) ?? new Float32Array(snapshot.rowCount).fill(Number.NaN);
}
