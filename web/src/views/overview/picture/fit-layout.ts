// A layout whose names fit above their groups. Pure; the worker calls it.

import type { Quantity } from "../../../base/format.ts";
import type { UnitColumns } from "../../../layout/attributes.ts";
import type { GroupKey } from "../../../layout/encode.ts";
import { type LayoutKind, serializeView, type View } from "../../../layout/grammar.ts";
import type { Packing } from "../../../layout/keep.ts";
import {
  keepUnits,
  type LayoutInput,
  layoutUnits,
  type PackedLayout,
  packUnits,
  type UnitLayout,
} from "../../../layout/layout.ts";
import { findAttribute } from "../../../state/attributes.ts";
import { formatNumber } from "../filter/number-words.ts";
import { UNIT_STATE_WORDS } from "../words.ts";
import { fitScale, type Size } from "./camera.ts";

export interface LayoutRequest {
  readonly view: View;
  readonly columns: UnitColumns;
  readonly space: Size;
  /** 1 for each row that the filters leave out; null where none is, or where those are to stay. */
  readonly filtered?: Uint8Array | null;
  /** Another number than that of the last request: pack again, whatever could stay where it is. */
  readonly packing?: number;
}

/** Page pixels that a name above a group needs. */
const LABEL_PX = [19, 15] as const;
/** What a letter of it takes on average, written small. */
const LETTER_PX = 6.2;
/** Bars are too narrow for names that lie: they get room for the longest name that stands, within limits. */
const [LEAST_STANDING_PX, MOST_STANDING_PX] = [76, 124];
const STANDING_LETTER_PX = 6.8;
const STANDING_MARGIN_PX = 12;
/** Groups that are narrower than this on average cannot show a name when seen whole. */
const NARROWEST_LABELED_PX = 44;

/** Names of hosts are cut to `gpu…0123`, and written small where they would not fit. */
const LETTERS_OF_CUT_NAME = 8;
/** Longer names of bars are cut either way. */
const LETTERS_OF_BAR = 12;
const SMALL_LETTER_PX = 5;
const HOST_MARGIN_PX = 6;

const WORDS = {
  missing: "none",
  missingOf: new Map([
    ["workload", "not known"],
    ["user", "not known"],
    ["project", "not known"],
    ["resource_type", "any"],
    ["waits_for", "unknown reason"],
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

/** From scratch. */
export function layoutToFit(request: LayoutRequest): UnitLayout {
  return formatLimits(packToFit(request).layout);
}

/** Lays out one request after the other: as long as only units come, go and change hands, the rest keeps its place. */
export function createLayouter(): (request: LayoutRequest) => UnitLayout {
  let last: { readonly words: string; readonly packing: Packing } | null = null;
  return (request) => {
    const { view, space, packing = 0 } = request;
    const words = JSON.stringify([serializeView(view), space.width, space.height, packing]);
    const kept = last?.words === words ? keepUnits(inputOf(request), last.packing) : null;
    const placed = kept ?? packToFit(request);
    last = { words, packing: placed.packing };
    return formatLimits(placed.layout);
  };
}

function inputOf({ view, columns, space, filtered = null }: LayoutRequest): LayoutInput {
  return { view, columns, space, filtered, options: { words: WORDS } };
}

/**
 * Names have a size in pixels, units have not: the first layout tells how large a unit will be on the page, the second
 * one keeps as much room for names as they need at that size.
 */
function packToFit(request: LayoutRequest): PackedLayout {
  const { view, space } = request;
  const input = inputOf(request);
  const first = layoutUnits(input);
  const scale = fitScale(first.bounds, space);
  const labelHeights = view.layers.map((layer, index) => {
    const isNarrow = meanWidth(first, index + 1) * scale < narrowestLabeled(first, index, layer.layout);
    if (isNarrow && layer.layout === "fillX") return standingRoom(first, index) / scale;
    if (isNarrow && index > 0) return 0;
    return (LABEL_PX[index] ?? LABEL_PX[1]) / scale;
  });
  return packUnits({ ...input, options: { ...input.options, labelHeights, letterWidth: LETTER_PX / scale } });
}

/** For the longest name of a layer, written upwards. */
function standingRoom({ layers }: UnitLayout, index: number): number {
  const needed = STANDING_MARGIN_PX + longestLabel(layers[index]) * STANDING_LETTER_PX;
  return Math.min(MOST_STANDING_PX, Math.max(LEAST_STANDING_PX, needed));
}

function longestLabel(layer: UnitLayout["layers"][number] | undefined): number {
  return layer?.labels.reduce((most, label) => Math.max(most, label.length), 0) ?? 0;
}

/** What a group must have to show its name when seen whole; of hosts, whose names are short and alike, the name itself. */
function narrowestLabeled({ layers }: UnitLayout, index: number, layout: LayoutKind): number {
  const layer = layers[index];
  const longest = longestLabel(layer);
  // Names of bars lie where all of them can, else all stand.
  if (layout === "fillX") return Math.max(NARROWEST_LABELED_PX, Math.min(longest, LETTERS_OF_BAR) * LETTER_PX);
  if (layer?.attribute !== "node") return NARROWEST_LABELED_PX;
  return Math.min(longest, LETTERS_OF_CUT_NAME) * SMALL_LETTER_PX + HOST_MARGIN_PX;
}

/** Bins by their limits with their unit: the layout knows only numbers. */
function formatLimits(layout: UnitLayout): UnitLayout {
  const layers = layout.layers.map((layer) => {
    const attribute = findAttribute(layer.attribute);
    if (attribute?.kind !== "number") return layer;
    const labels = layer.keys.map((key, index) => formatKey(key, attribute.unit) ?? layer.labels[index] ?? "");
    return { ...layer, labels };
  });
  return { ...layout, layers };
}

function formatKey(key: GroupKey, unit: Quantity): string | null {
  if (key.kind === "number") return formatNumber(key.value, unit);
  if (key.kind !== "bin") return null;
  const { from, to } = key;
  if (from === Number.NEGATIVE_INFINITY) return `< ${formatNumber(to, unit)}`;
  if (to === Number.POSITIVE_INFINITY) return `≥ ${formatNumber(from, unit)}`;
  return from === to ? formatNumber(from, unit) : `${formatNumber(from, unit)} – ${formatNumber(to, unit)}`;
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
