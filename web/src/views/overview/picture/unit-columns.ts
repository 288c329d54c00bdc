// What a view needs to know of units to lay them out, and no more: it is copied to a worker.

import type { UnitNameColumn } from "../../../api/snapshot.ts";
import { UNIT_METRICS, type Units } from "../../../data/units.ts";
import type { AttributeValues, UnitColumns } from "../../../layout/attributes.ts";
import { attributeOf, type View } from "../../../layout/grammar.ts";
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

function readAttribute(units: Units, name: string): AttributeValues {
  if (name === "wait_s") return computeWaits(units);
  const metric = UNIT_METRICS.find((known) => known === name);
  if (metric === undefined) return units.snapshot.names(name as UnitNameColumn);
  return units.tick?.find(metric) ?? new Float32Array(units.snapshot.rowCount).fill(Number.NaN);
}
