// The sizes of groups from the inside out, and their positions within the parent: several shapes are tried, and the one
// that needs the least space is taken.

import { type Boxes, type Extent, makeBoxes, transposeBoxes, transposeExtent } from "./boxes.ts";
import { arrangeFill } from "./fill.ts";
import type { Layer, View } from "./grammar.ts";
import type { GroupTree } from "./group.ts";
import { arrangeList } from "./list.ts";
import { createPacker, type Packer } from "./pack.ts";
import { type Areas, computeAreas, computeTargets, contentOf, listLeastWidths, type Spacing } from "./targets.ts";
import { chooseGrid, directionOf } from "./unit-grid.ts";

export interface Measured {
  /** Places within the parent's content. */
  readonly boxes: Boxes;
  /** What is inside of border and label. */
  readonly content: Sizes;
  /** Units in a row of each innermost group, or in a column where they go down first; and how many such lines. */
  readonly across: Uint32Array;
  readonly lines: Uint32Array;
  /** The cell of each unit in the grid of its group, in the order of the tree's rows; null: line after line without a gap. */
  readonly cells: Uint32Array | null;
}

interface Sizes {
  readonly width: Float64Array;
  readonly height: Float64Array;
}

export function makeMeasured(groupCount: number, cells: Uint32Array | null = null): Measured {
  return {
    boxes: makeBoxes(groupCount),
    content: { width: new Float64Array(groupCount), height: new Float64Array(groupCount) },
    across: new Uint32Array(groupCount),
    lines: new Uint32Array(groupCount),
    cells,
  };
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

export function measureToFit(view: View, tree: GroupTree, spacing: Spacing, aspect: number): Measured {
  const packer = createPacker(countMostChildren(tree));
  const areas = computeAreas(view, tree, spacing);
  const leastWidths = listLeastWidths(spacing, tree);
  const needed = ({ boxes }: Measured) => Math.max((boxes.width[0] ?? 0) / aspect, boxes.height[0] ?? 0);
  const outer = view.layers[0];
  if (outer?.layout === "pack") {
    const shapes = tree.rows.length > MOST_UNITS_TO_TRY ? [1] : SHAPES;
    return pickBest(shapes, needed, tree.groupCount, (shape, into) => {
      const layers = [{ ...outer, aspect: outer.aspect * shape }, ...view.layers.slice(1)];
      return measure({ ...view, layers }, tree, spacing, aspect, packer, areas, leastWidths, into);
    });
  }
  return aimAgain(aspect, needed, (aim) => {
    return measure(view, tree, spacing, aim, packer, areas, leastWidths, makeMeasured(tree.groupCount));
  });
}

/** The best one, and the next to compare with it, are written into the same two, again and again. */
function pickBest(
  shapes: readonly number[],
  needed: (measured: Measured) => number,
  groupCount: number,
  measureShape: (shape: number, into: Measured) => Measured,
): Measured {
  let best = measureShape(1, makeMeasured(groupCount));
  let spare = shapes.length > 1 ? makeMeasured(groupCount) : best;
  let smallest = needed(best);
  for (const shape of shapes.slice(1)) {
    const measured = measureShape(shape, spare);
    if (needed(measured) >= smallest * WORTH_IT) continue;
    smallest = needed(measured);
    spare = best;
    best = measured;
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
function measure(
  view: View,
  tree: GroupTree,
  spacing: Spacing,
  aspect: number,
  packer: Packer,
  areas: Areas,
  leastWidths: Float64Array | null,
  measured: Measured,
): Measured {
  const targets = computeTargets(view, tree, spacing, aspect, areas);
  const { boxes } = measured;
  for (let group = tree.groupCount - 1; group >= 0; group -= 1) {
    const depth = tree.depth[group] ?? 0;
    const target = contentOf(spacing, depth, targets.width[group] ?? 0, targets.height[group] ?? 0);
    const layer = view.layers[depth];
    if (layer === undefined) {
      measureUnits(measured, view, tree.unitCount[group] ?? 0, target, group);
    } else {
      const first = tree.childStart[group] ?? 0;
      const last = tree.childStart[group + 1] ?? 0;
      if (layer.size === "uniform") equalize(boxes, first, last);
      const content = arrange(layer, boxes, first, last, spacing.padding[depth + 1] ?? 0, target, packer);
      measured.content.width[group] = content.width;
      measured.content.height[group] = content.height;
    }
    measureBox(measured, group, depth, spacing, leastWidths);
  }
  return measured;
}

/** The box around a group's content. */
export function measureBox(
  { boxes, content }: Measured,
  group: number,
  depth: number,
  spacing: Spacing,
  leastWidths: Float64Array | null,
): void {
  const padding = 2 * (spacing.padding[depth] ?? 0);
  const width = Math.max((content.width[group] ?? 0) + padding, leastWidths?.[group] ?? 0);
  const height = (content.height[group] ?? 0) + padding + (spacing.labelHeight[depth] ?? 0);
  boxes.width[group] = width;
  boxes.height[group] = height;
}

function countMostChildren({ groupCount, childStart }: GroupTree): number {
  let most = 1;
  for (let group = 0; group < groupCount; group += 1) {
    most = Math.max(most, (childStart[group + 1] ?? 0) - (childStart[group] ?? 0));
  }
  return most;
}

function measureUnits(measured: Measured, view: View, count: number, target: Extent, group: number): void {
  if (count === 0) return;
  const { columns, rows } = chooseGrid(view.mark, count, target);
  const isRows = directionOf(view.mark) === "rows";
  setGrid(measured, view, group, isRows ? columns : rows, isRows ? rows : columns);
}

/** A grid of `lines` with `across` units each is the content of a group. */
export function setGrid(measured: Measured, { mark }: View, group: number, across: number, lines: number): void {
  const isRows = directionOf(mark) === "rows";
  const columns = isRows ? across : lines;
  const rows = isRows ? lines : across;
  measured.across[group] = across;
  measured.lines[group] = lines;
  measured.content.width[group] = Math.max(0, columns + (columns - 1) * mark.padding);
  measured.content.height[group] = Math.max(0, rows + (rows - 1) * mark.padding);
}

export function equalize({ width, height }: Boxes, from: number, to: number): void {
  let widest = 0;
  let highest = 0;
  for (let box = from; box < to; box += 1) {
    widest = Math.max(widest, width[box] ?? 0);
    highest = Math.max(highest, height[box] ?? 0);
  }
  width.fill(widest, from, to);
  height.fill(highest, from, to);
}

export function arrange(
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
