// Computes the position of every square and group from a view and the columns of all units: sizes from the inside out,
// positions from the outside in. Pure and deterministic; plain data in and out, so that it can run in a worker.

import type { UnitColumns } from "./attributes.ts";
import { isNames } from "./attributes.ts";
import type { Boxes, Extent } from "./boxes.ts";
import type { GroupWords, LayerKeys } from "./encode.ts";
import type { View } from "./grammar.ts";
import { type GroupTree, groupUnits } from "./group.ts";
import { findUnitNames, keepPlaces, type Packing } from "./keep.ts";
import { type Measured, measureToFit } from "./measure.ts";
import { markShown } from "./shown-units.ts";
import { computeSpacing, type Spacing } from "./targets.ts";
import { directionOf } from "./unit-grid.ts";

export interface LayoutInput {
  readonly view: View;
  readonly columns: UnitColumns;
  /** 1 for each unit that the filters leave out; null: none. */
  readonly filtered: Uint8Array | null;
  /** Where it will be drawn; only the shape matters. */
  readonly space: Extent;
  readonly options?: Partial<LayoutOptions>;
}

export interface LayoutOptions {
  readonly words: GroupWords;
  /** Distinct values of one attribute before the smallest are put together as "other". */
  readonly foldLimit: number;
  /** Attributes that are never put together. */
  readonly unfolded: readonly string[];
  /** Of each layer, outermost first, in sides of a unit; null: fitting the groups' size. */
  readonly labelHeights: readonly number[] | null;
  /** Of a label, in sides of a unit: packed groups are at least as wide as their names; 0: names may be cut. */
  readonly letterWidth: number;
}

export const DEFAULT_OPTIONS: LayoutOptions = {
  words: { missing: "none", missingOf: new Map(), other: "other" },
  foldLimit: 500,
  unfolded: ["unit", "node", "workload"],
  labelHeights: null,
  letterWidth: 0,
};

/** Lengths are in sides of a unit, Y goes down; (x, y) is the upper left corner. */
export interface UnitLayout {
  /** By row: slot = row. Units that are not laid out have size 0 and lie in the middle of everything. */
  readonly x: Float32Array<ArrayBuffer>;
  readonly y: Float32Array<ArrayBuffer>;
  readonly size: Float32Array<ArrayBuffer>;
  /** The innermost group of each row; 0, everything, for units that are not laid out. */
  readonly group: Uint32Array<ArrayBuffer>;
  readonly groups: GroupBoxes;
  /** Keys and labels of each layer, outermost first. */
  readonly layers: readonly LayerKeys[];
  /** Everything lies in 0 … width, 0 … height. */
  readonly bounds: Extent;
  /** How many units are laid out. */
  readonly unitCount: number;
  /** Between units of one group. */
  readonly unitGap: number;
  /** Whether it keeps the places of a former one, and packing again may make it tighter. */
  readonly isKept: boolean;
  /** How much longer the side of the space it needs is than when it was packed; 1 where nothing was kept. */
  readonly looseness: number;
}

/** Group 0 is everything. Parents come before their children, siblings are neighbors. */
export interface GroupBoxes {
  readonly count: number;
  readonly x: Float32Array<ArrayBuffer>;
  readonly y: Float32Array<ArrayBuffer>;
  readonly width: Float32Array<ArrayBuffer>;
  readonly height: Float32Array<ArrayBuffer>;
  /** 0 for everything, k for layer k − 1. */
  readonly depth: Uint8Array<ArrayBuffer>;
  /** Group 0 is its own parent. */
  readonly parent: Uint32Array<ArrayBuffer>;
  /** Units laid out in the group, and those of them that the filters let through. */
  readonly unitCount: Uint32Array<ArrayBuffer>;
  readonly matchingCount: Uint32Array<ArrayBuffer>;
  /** Index into the keys and labels of its layer. */
  readonly key: Uint32Array<ArrayBuffer>;
  /** By depth: what is kept free at the top of a box, inside the padding. */
  readonly labelHeight: readonly number[];
  readonly padding: readonly number[];
}

export function layoutUnits(input: LayoutInput): UnitLayout {
  return packUnits(input).layout;
}

/** A layout, and what the next one of the same view keeps of it. */
export interface PackedLayout {
  readonly layout: UnitLayout;
  readonly packing: Packing;
}

/** From scratch, as tight as it can be. */
export function packUnits(input: LayoutInput): PackedLayout {
  const settings: LayoutOptions = { ...DEFAULT_OPTIONS, ...input.options };
  const tree = groupInput(input, settings);
  const spacing = computeSpacing(input.view, tree, settings.labelHeights, settings.letterWidth);
  const measured = measureToFit(input.view, tree, spacing, aspectOf(input.space));
  const { width, height } = measured.boxes;
  const packed = { width: width[0] ?? 0, height: height[0] ?? 0 };
  return place(input, { tree, spacing, measured, units: findUnitNames(input.columns), packed }, false);
}

/** As the former layout of the same view and space was, as far as that still holds; null where too much has changed. */
export function keepUnits(input: LayoutInput, former: Packing): PackedLayout | null {
  const { spacing } = former;
  const tree = groupInput(input, { ...DEFAULT_OPTIONS, ...input.options });
  const units = findUnitNames(input.columns);
  const measured = keepPlaces(input.view, tree, units, former, aspectOf(input.space));
  return measured && place(input, { tree, spacing, measured, units, packed: former.packed }, true);
}

function groupInput({ view, columns, filtered }: LayoutInput, settings: LayoutOptions): GroupTree {
  return groupUnits(view, columns, listRows(view, columns, filtered), settings);
}

function place({ view, columns, filtered, space }: LayoutInput, packing: Packing, isKept: boolean): PackedLayout {
  const { tree, spacing, measured } = packing;
  const boxes = placeGroups(view, tree, spacing, measured.boxes);
  const aspect = aspectOf(space);
  const needed = ({ width, height }: Extent) => Math.max(width / aspect, height);
  const bounds = { width: boxes.width[0] ?? 0, height: boxes.height[0] ?? 0 };
  const layout: UnitLayout = {
    ...placeUnits(view, tree, spacing, boxes, measured, columns.rowCount),
    groups: toGroupBoxes(tree, spacing, boxes, filtered),
    layers: tree.layers,
    bounds,
    unitCount: tree.rows.length,
    unitGap: view.mark.padding,
    isKept,
    looseness: needed(bounds) / Math.max(1, needed(packing.packed)),
  };
  return { layout, packing };
}

/** The name of a group as it is written above it. */
export function labelOf(layout: UnitLayout, group: number): string {
  const { depth, key } = layout.groups;
  return layout.layers[(depth[group] ?? 0) - 1]?.labels[key[group] ?? 0] ?? "";
}

/** The buffers to hand over, rather than copy, when a layout is posted by a worker. */
export function listBuffers({ x, y, size, group, groups }: UnitLayout): readonly ArrayBuffer[] {
  const { depth, parent, unitCount, matchingCount, key } = groups;
  const arrays = [x, y, size, group, groups.x, groups.y, groups.width, groups.height];
  return [...arrays, depth, parent, unitCount, matchingCount, key].map((array) => array.buffer);
}

function aspectOf({ width, height }: Extent): number {
  const aspect = width / height;
  return aspect > 0 && Number.isFinite(aspect) ? aspect : 1;
}

function listRows(view: View, { rowCount, attributes }: UnitColumns, filtered: Uint8Array | null): Uint32Array {
  const namesOf = (name: string) => {
    const values = attributes.get(name);
    return values !== undefined && isNames(values) ? values : null;
  };
  const shown = markShown(view.units, rowCount, namesOf("unit_state"), namesOf("workload"));
  const hidden = view.filtered === "vanish" ? filtered : null;
  const rows = new Uint32Array(rowCount);
  let count = 0;
  for (let row = 0; row < rowCount; row += 1) {
    if (hidden?.[row] === 1 || shown[row] === 0) continue;
    rows[count] = row;
    count += 1;
  }
  return rows.subarray(0, count);
}

/** From places within the parent's content to places within everything. A fill takes all the room its parent got. */
function placeGroups(view: View, tree: GroupTree, spacing: Spacing, inner: Boxes): Boxes {
  const [x, y, width, height] = [inner.x.slice(), inner.y.slice(), inner.width.slice(), inner.height.slice()];
  for (let group = 1; group < tree.groupCount; group += 1) {
    const parent = tree.parent[group] ?? 0;
    const depth = tree.depth[parent] ?? 0;
    const padding = spacing.padding[depth] ?? 0;
    const labelHeight = spacing.labelHeight[depth] ?? 0;
    x[group] = (x[group] ?? 0) + (x[parent] ?? 0) + padding;
    y[group] = (y[group] ?? 0) + (y[parent] ?? 0) + padding + labelHeight;
    const layout = view.layers[depth]?.layout;
    if (layout === "fillX") height[group] = (height[parent] ?? 0) - 2 * padding - labelHeight;
    if (layout === "fillY") width[group] = (width[parent] ?? 0) - 2 * padding;
  }
  return { x, y, width, height };
}

function placeUnits(
  view: View,
  tree: GroupTree,
  spacing: Spacing,
  boxes: Boxes,
  { across, cells }: Measured,
  rowCount: number,
): Pick<UnitLayout, "x" | "y" | "size" | "group"> {
  const x = new Float32Array(rowCount).fill((boxes.width[0] ?? 0) / 2);
  const y = new Float32Array(rowCount).fill((boxes.height[0] ?? 0) / 2);
  const size = new Float32Array(rowCount);
  const groupOfRow = new Uint32Array(rowCount);
  const depth = view.layers.length;
  const padding = spacing.padding[depth] ?? 0;
  const labelHeight = spacing.labelHeight[depth] ?? 0;
  const pitch = 1 + view.mark.padding;
  const isRows = directionOf(view.mark) === "rows";
  const isFromBottom = view.mark.from === "bottom";
  for (let group = tree.depthStart[depth] ?? 0; group < tree.groupCount; group += 1) {
    const left = (boxes.x[group] ?? 0) + padding;
    const top = (boxes.y[group] ?? 0) + padding + labelHeight;
    const bottom = (boxes.y[group] ?? 0) + (boxes.height[group] ?? 0) - padding - 1;
    const start = tree.unitStart[group] ?? 0;
    const count = tree.unitCount[group] ?? 0;
    const width = across[group] ?? 1;
    for (let index = 0; index < count; index += 1) {
      const row = tree.rows[start + index] ?? 0;
      const cell = cells === null ? index : (cells[start + index] ?? 0);
      const line = Math.floor(cell / width);
      const place = cell - line * width;
      const down = (isRows ? line : place) * pitch;
      x[row] = left + (isRows ? place : line) * pitch;
      y[row] = isFromBottom ? bottom - down : top + down;
      size[row] = 1;
      groupOfRow[row] = group;
    }
  }
  return { x, y, size, group: groupOfRow };
}

function toGroupBoxes(tree: GroupTree, spacing: Spacing, boxes: Boxes, filtered: Uint8Array | null): GroupBoxes {
  return {
    count: tree.groupCount,
    x: new Float32Array(boxes.x),
    y: new Float32Array(boxes.y),
    width: new Float32Array(boxes.width),
    height: new Float32Array(boxes.height),
    depth: new Uint8Array(tree.depth),
    parent: new Uint32Array(tree.parent),
    unitCount: new Uint32Array(tree.unitCount),
    matchingCount: countMatching(tree, filtered),
    key: new Uint32Array(tree.key),
    labelHeight: spacing.labelHeight,
    padding: spacing.padding,
  };
}

/** Units of a group lie together in `rows`, so that a running sum answers for all groups. */
function countMatching(tree: GroupTree, filtered: Uint8Array | null): Uint32Array<ArrayBuffer> {
  if (filtered === null) return new Uint32Array(tree.unitCount);
  const before = new Uint32Array(tree.rows.length + 1);
  tree.rows.forEach((row, index) => {
    before[index + 1] = (before[index] ?? 0) + (filtered[row] === 1 ? 0 : 1);
  });
  return new Uint32Array(tree.groupCount).map((_, group) => {
    const start = tree.unitStart[group] ?? 0;
    return (before[start + (tree.unitCount[group] ?? 0)] ?? 0) - (before[start] ?? 0);
  });
}
