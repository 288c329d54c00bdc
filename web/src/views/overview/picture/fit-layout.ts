// A layout whose names fit above their groups. Pure; the worker calls it.

import type { Quantity } from "../../../base/format.ts";
import type { UnitColumns } from "../../../layout/attributes.ts";
import type { GroupKey } from "../../../layout/encode.ts";
import type { View } from "../../../layout/grammar.ts";
import { layoutUnits, type UnitLayout } from "../../../layout/layout.ts";
import { findAttribute } from "../../../state/attributes.ts";
import { sayNumber } from "../filter/number-words.ts";
import { UNIT_STATE_WORDS } from "../words.ts";
import { fitScale, type Size } from "./camera.ts";

export interface LayoutRequest {
  readonly view: View;
  readonly columns: UnitColumns;
  readonly space: Size;
  /** 1 for each row that the filters leave out; null where none is, or where those are to stay. */
  readonly filtered?: Uint8Array | null;
}

/** Page pixels that a name above a group needs. */
const LABEL_PX = [20, 17] as const;
/** Bars are too narrow for names that lie: they get room for names that stand. */
const STANDING_LABEL_PX = 76;
/** Groups that are narrower than this on average cannot show a name when seen whole. */
const NARROWEST_LABELED_PX = 44;

/** Names of hosts are cut to `gpu…0123`, and written small where they would not fit. */
const LETTERS_OF_CUT_NAME = 8;
const SMALL_LETTER_PX = 5;
const HOST_MARGIN_PX = 6;

const WORDS = {
  missing: "none",
  missingOf: new Map([
    ["workload", "not known"],
    ["user", "not known"],
    ["project", "not known"],
    ["resource_type", "any"],
    ["node", "not placed"],
  ]),
  other: "other",
  apart: {
    attributes: new Set(["workload", "user", "project"]),
    by: "unit_state",
    words: new Map([
      ["free", UNIT_STATE_WORDS.free],
      ["unavailable", UNIT_STATE_WORDS.unavailable],
      ["stale", UNIT_STATE_WORDS.stale],
    ]),
  },
};

/**
 * Names have a size in pixels, units have not: the first layout tells how large a unit will be on the page, the second
 * one keeps as much room for names as they need at that size.
 */
export function layoutToFit({ view, columns, space, filtered = null }: LayoutRequest): UnitLayout {
  const input = { view, columns, space, filtered };
  const first = layoutUnits({ ...input, options: { words: WORDS } });
  const scale = fitScale(first.bounds, space);
  const labelHeights = view.layers.map((layer, index) => {
    const isNarrow = meanWidth(first, index + 1) * scale < narrowestLabeled(first, index);
    if (isNarrow && layer.layout === "fillX") return STANDING_LABEL_PX / scale;
    if (isNarrow && index > 0) return 0;
    return (LABEL_PX[index] ?? LABEL_PX[1]) / scale;
  });
  return sayLimits(layoutUnits({ ...input, options: { words: WORDS, labelHeights } }));
}

/** What a group must have to show its name when seen whole; of hosts, whose names are short and alike, the name itself. */
function narrowestLabeled({ layers }: UnitLayout, index: number): number {
  const layer = layers[index];
  if (layer?.attribute !== "node") return NARROWEST_LABELED_PX;
  const longest = layer.labels.reduce((most, label) => Math.max(most, label.length), 0);
  return Math.min(longest, LETTERS_OF_CUT_NAME) * SMALL_LETTER_PX + HOST_MARGIN_PX;
}

/** Bins by their limits with their unit: the layout knows only numbers. */
function sayLimits(layout: UnitLayout): UnitLayout {
  const layers = layout.layers.map((layer) => {
    const attribute = findAttribute(layer.attribute);
    if (attribute?.kind !== "number") return layer;
    const labels = layer.keys.map((key, index) => sayKey(key, attribute.unit) ?? layer.labels[index] ?? "");
    return { ...layer, labels };
  });
  return { ...layout, layers };
}

function sayKey(key: GroupKey, unit: Quantity): string | null {
  if (key.kind === "number") return sayNumber(key.value, unit);
  if (key.kind !== "bin") return null;
  const { from, to } = key;
  if (from === Number.NEGATIVE_INFINITY) return `< ${sayNumber(to, unit)}`;
  if (to === Number.POSITIVE_INFINITY) return `≥ ${sayNumber(from, unit)}`;
  return from === to ? sayNumber(from, unit) : `${sayNumber(from, unit)} – ${sayNumber(to, unit)}`;
}

function meanWidth({ groups }: UnitLayout, depth: number): number {
  let sum = 0;
  let count = 0;
  for (let group = 0; group < groups.count; group += 1) {
    if (groups.depth[group] !== depth) continue;
    sum += groups.width[group] ?? 0;
    count += 1;
  }
  return count === 0 ? 0 : sum / count;
}
