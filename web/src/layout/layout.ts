// From a view and the columns of all units to the place of every square and every group: sizes from the inside out,
// places from the outside in. Pure and deterministic; plain data in and out, so that it can run in a worker.

import type { UnitColumns } from "./attributes.ts";
import { isNames } from "./attributes.ts";
import { type Boxes, type Extent, makeBoxes, transposeBoxes, transposeExtent } from "./boxes.ts";
import type { GroupWords, LayerKeys } from "./encode.ts";
import { arrangeFill } from "./fill.ts";
import type { Layer, View } from "./grammar.ts";
import { type GroupTree, groupUnits } from "./group.ts";
import { arrangeList } from "./list.ts";
import { createPacker, type Packer } from "./pack.ts";
import { computeSpacing, computeTargets, contentOf, type Spacing } from "./targets.ts";
import { chooseGrid, directionOf } from "./unit-grid.ts";

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
}

export const DEFAULT_OPTIONS: LayoutOptions = {
  words: { missing: "none", missingOf: new Map(), other: "other" },
  foldLimit: 500,
  unfolded: ["unit", "node", "workload"],
  labelHeights: null,
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

/** What the unit state of a GPU is that a waiting workload asks for. */
const REQUESTED = "requested";

export function layoutUnits({ view, columns, filtered, space, options }: LayoutInput): UnitLayout {
  const settings: LayoutOptions = { ...DEFAULT_OPTIONS, ...options };
  const tree = groupUnits(view, columns, listRows(view, columns, filtered), settings);
  const spacing = computeSpacing(view, tree, settings.labelHeights);
  const { boxes, columnCounts } = measureToFit(view, tree, spacing, aspectOf(space));
  placeGroups(view, tree, spacing, boxes);
  const bounds = { width: boxes.width[0] ?? 0, height: boxes.height[0] ?? 0 };
  return {
    ...placeUnits(view, tree, spacing, boxes, columnCounts, columns.rowCount),
    groups: toGroupBoxes(tree, spacing, boxes, filtered),
    layers: tree.layers,
    bounds,
    unitCount: tree.rows.length,
  };
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
  const states = attributes.get("unit_state");
  const requested = states !== undefined && isNames(states) ? states.names.indexOf(REQUESTED) : -1;
  const codes = states !== undefined && isNames(states) ? states.codes : null;
  const hidden = view.filtered === "vanish" ? filtered : null;
  const rows = new Uint32Array(rowCount);
  let count = 0;
  for (let row = 0; row < rowCount; row += 1) {
    if (hidden?.[row] === 1) continue;
    if (view.units !== "all" && (codes?.[row] === requested) !== (view.units === "requested")) continue;
    rows[count] = row;
    count += 1;
  }
  return rows.subarray(0, count);
}

interface Measured {
  readonly boxes: Boxes;
  /** Units in a row of each innermost group, or in a column where they go down first. */
  readonly columnCounts: Uint32Array;
}

const MAX_MEASURES = 3;
/** A whole that is this near to the shape of the space is not measured again. */
const GOOD_FIT = 0.85;
/** Shapes of packed outer groups to try, against the one aimed at: what fits together only trying tells. */
const SHAPES = [1, 0.85, 1.2, 0.7, 1.4, 1.7];
/** With more units than this only the one aimed at, to stay quick. */
const MOST_UNITS_TO_TRY = 20_000;
/** Another shape than the one aimed at must be worth it. */
const WORTH_IT = 0.98;

function measureToFit(view: View, tree: GroupTree, spacing: Spacing, aspect: number): Measured {
  const packer = createPacker(countMostChildren(tree));
  const needed = ({ boxes }: Measured) => Math.max((boxes.width[0] ?? 0) / aspect, boxes.height[0] ?? 0);
  const outer = view.layers[0];
  if (outer?.layout === "pack") {
    const shapes = tree.rows.length > MOST_UNITS_TO_TRY ? [1] : SHAPES;
    return pickBest(shapes, needed, (shape) => {
      const layers = [{ ...outer, aspect: outer.aspect * shape }, ...view.layers.slice(1)];
      return measure({ ...view, layers }, tree, spacing, aspect, packer);
    });
  }
  return aimAgain(aspect, needed, (aim) => measure(view, tree, spacing, aim, packer));
}

function pickBest(
  shapes: readonly number[],
  needed: (measured: Measured) => number,
  measureShape: (shape: number) => Measured,
): Measured {
  let best = measureShape(1);
  let smallest = needed(best);
  for (const shape of shapes.slice(1)) {
    const measured = measureShape(shape);
    if (needed(measured) >= smallest * WORTH_IT) continue;
    best = measured;
    smallest = needed(measured);
  }
  return best;
}

/** Whole rows and columns add up to another shape than the one aimed at; then it is aimed the other way. */
function aimAgain(
  aspect: number,
  needed: (measured: Measured) => number,
  measureFor: (aim: number) => Measured,
): Measured {
  let aim = aspect;
  let best = measureFor(aim);
  let measured = best;
  for (let attempt = 1; attempt < MAX_MEASURES; attempt += 1) {
    const ratio = (measured.boxes.width[0] ?? 0) / (measured.boxes.height[0] ?? 0) / aspect;
    if (!(ratio < GOOD_FIT || ratio > 1 / GOOD_FIT)) break;
    aim /= ratio;
    measured = measureFor(aim);
    if (needed(measured) < needed(best)) best = measured;
  }
  return best;
}

/** Arranges the contents of every group from the inside out. */
function measure(view: View, tree: GroupTree, spacing: Spacing, aspect: number, packer: Packer): Measured {
  const targets = computeTargets(view, tree, spacing, aspect);
  const boxes = makeBoxes(tree.groupCount);
  const columnCounts = new Uint32Array(tree.groupCount);
  for (let group = tree.groupCount - 1; group >= 0; group -= 1) {
    const depth = tree.depth[group] ?? 0;
    const target = contentOf(spacing, depth, targets.width[group] ?? 0, targets.height[group] ?? 0);
    const layer = view.layers[depth];
    let content: Extent;
    if (layer === undefined) {
      content = measureUnits(view, tree.unitCount[group] ?? 0, target, group, columnCounts);
    } else {
      const first = tree.childStart[group] ?? 0;
      const last = tree.childStart[group + 1] ?? 0;
      if (layer.size === "uniform") equalize(boxes, first, last);
      content = arrange(layer, boxes, first, last, spacing.padding[depth + 1] ?? 0, target, packer);
    }
    const padding = 2 * (spacing.padding[depth] ?? 0);
    boxes.width[group] = content.width + padding;
    boxes.height[group] = content.height + padding + (spacing.labelHeight[depth] ?? 0);
  }
  return { boxes, columnCounts };
}

function countMostChildren({ groupCount, childStart }: GroupTree): number {
  let most = 1;
  for (let group = 0; group < groupCount; group += 1) {
    most = Math.max(most, (childStart[group + 1] ?? 0) - (childStart[group] ?? 0));
  }
  return most;
}

function measureUnits(view: View, count: number, target: Extent, group: number, columnCounts: Uint32Array): Extent {
  if (count === 0) return { width: 0, height: 0 };
  const { columns, rows } = chooseGrid(view.mark, count, target);
  columnCounts[group] = directionOf(view.mark) === "rows" ? columns : rows;
  const pitch = 1 + view.mark.padding;
  return { width: columns * pitch - view.mark.padding, height: rows * pitch - view.mark.padding };
}

function equalize({ width, height }: Boxes, from: number, to: number): void {
  let widest = 0;
  let highest = 0;
  for (let box = from; box < to; box += 1) {
    widest = Math.max(widest, width[box] ?? 0);
    highest = Math.max(highest, height[box] ?? 0);
  }
  width.fill(widest, from, to);
  height.fill(highest, from, to);
}

function arrange(
  layer: Layer,
  boxes: Boxes,
  from: number,
  to: number,
  gap: number,
  target: Extent,
  packer: Packer,
): Extent {
  if (from === to) return { width: 0, height: 0 };
  switch (layer.layout) {
    case "pack":
      return packer.arrange(boxes, from, to, gap, target);
    case "fillX":
      return arrangeFill(boxes, from, to, gap);
    case "fillY":
      return transposeExtent(arrangeFill(transposeBoxes(boxes), from, to, gap));
    case "listX":
      return arrangeList(boxes, from, to, { gap, target, limit: layer.limit });
    case "listY": {
      const options = { gap, target: transposeExtent(target), limit: layer.limit };
      return transposeExtent(arrangeList(transposeBoxes(boxes), from, to, options));
    }
  }
}

/** From places within the parent's content to places within everything. A fill takes all the room its parent got. */
function placeGroups(view: View, tree: GroupTree, spacing: Spacing, { x, y, width, height }: Boxes): void {
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
}

function placeUnits(
  view: View,
  tree: GroupTree,
  spacing: Spacing,
  boxes: Boxes,
  columnCounts: Uint32Array,
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
    const across = columnCounts[group] ?? 1;
    const left = (boxes.x[group] ?? 0) + padding;
    const top = (boxes.y[group] ?? 0) + padding + labelHeight;
    const bottom = (boxes.y[group] ?? 0) + (boxes.height[group] ?? 0) - padding - 1;
    const start = tree.unitStart[group] ?? 0;
    const count = tree.unitCount[group] ?? 0;
    for (let index = 0; index < count; index += 1) {
      const row = tree.rows[start + index] ?? 0;
      const along = Math.floor(index / across);
      const beside = index - along * across;
      const down = (isRows ? along : beside) * pitch;
      x[row] = left + (isRows ? beside : along) * pitch;
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
