// Computes the target space of each group from its number of units: areas from the inside out, shapes from the outside
// in. Only targets: the real size of a group is measured from its arranged content.

import type { Extent } from "./boxes.ts";
import type { Layer, View } from "./grammar.ts";
import type { GroupTree } from "./group.ts";

/** By depth; depth 0, everything, has neither border nor label. Lengths in sides of a unit. */
export interface Spacing {
  /** Inside the border of a group of this depth, and between it and its siblings. */
  readonly padding: readonly number[];
  /** Kept free for the label, inside the border. */
  readonly labelHeight: readonly number[];
  /** What a letter of a label takes of a packed group's width; 0: names may be cut. */
  readonly letterWidth: readonly number[];
}

/** Longer names are cut. */
const MOST_LETTERS = 12;

/** Of each group: the width of a box in which its name fits; null where names may be cut. */
export function listLeastWidths({ letterWidth, padding }: Spacing, tree: GroupTree): Float64Array | null {
  if (letterWidth.every((letter) => letter === 0)) return null;
  const nameOf = (at: number, layer: number) => tree.layers[layer]?.labels[tree.key[at] ?? 0] ?? "";
  return Float64Array.from(tree.depth, (depth, group) => {
    const letter = letterWidth[depth] ?? 0;
    const name = nameOf(group, depth - 1);
    // Units nobody holds have no project and no user: that is said once.
    if (letter === 0 || (depth > 1 && name === nameOf(tree.parent[group] ?? 0, depth - 2))) return 0;
    return Math.min(name.length, MOST_LETTERS) * letter + 2 * (padding[depth] ?? 0);
  });
}

/**
 * Relative to the side of a square group of the layer's mean size. Outer layers get more, so that they stay
 * distinguishable when zoomed out.
 */
const PADDING_SHARE = 0.025;
const LABEL_SHARE = 0.08;
const MIN_PADDING = 0.25;
const UNFRAMED_PADDING = 0.15;
const MIN_LABEL_HEIGHT = 1;

export function computeSpacing(
  view: View,
  tree: GroupTree,
  labelHeights: readonly number[] | null,
  letter: number,
): Spacing {
  const padding = [0];
  const labelHeight = [0];
  const letterWidth = [0];
  view.layers.forEach((layer, index) => {
    const groups = (tree.depthStart[index + 2] ?? 0) - (tree.depthStart[index + 1] ?? 0);
    const side = Math.sqrt(tree.rows.length / Math.max(1, groups));
    // Only the outermost and the innermost groups have a frame to keep away from.
    const isFramed = index === 0 || index === view.layers.length - 1;
    padding.push(layer.padding ?? (isFramed ? Math.max(MIN_PADDING, PADDING_SHARE * side) : UNFRAMED_PADDING));
    labelHeight.push(layer.label ? (labelHeights?.[index] ?? Math.max(MIN_LABEL_HEIGHT, LABEL_SHARE * side)) : 0);
    const isNamed = (labelHeight.at(-1) ?? 0) > 0 && layer.layout === "pack" && layer.size === "count";
    letterWidth.push(isNamed ? letter : 0);
  });
  return { padding, labelHeight, letterWidth };
}

export interface Targets {
  /** Of each group's box, without the gap to its siblings. */
  readonly width: Float64Array;
  readonly height: Float64Array;
}

/** What is left of a box for its contents; at least one unit. */
export function contentOf(spacing: Spacing, depth: number, width: number, height: number): Extent {
  const padding = 2 * (spacing.padding[depth] ?? 0);
  return {
    width: Math.max(1, width - padding),
    height: Math.max(1, height - padding - (spacing.labelHeight[depth] ?? 0)),
  };
}

/** `aspect`: width over height of the whole. */
export function computeTargets(
  view: View,
  tree: GroupTree,
  spacing: Spacing,
  aspect: number,
  { areas, order }: Areas,
): Targets {
  const targets: Targets = { width: new Float64Array(tree.groupCount), height: new Float64Array(tree.groupCount) };
  targets.width[0] = Math.sqrt((areas[0] ?? 0) * aspect);
  targets.height[0] = Math.sqrt((areas[0] ?? 0) / aspect);
  view.layers.forEach((layer, depth) => {
    const largest = layer.size === "uniform" ? findLargest(areas, tree, depth + 1) : null;
    const end = tree.depthStart[depth + 1] ?? 0;
    for (let group = tree.depthStart[depth] ?? 0; group < end; group += 1) {
      const content = contentOf(spacing, depth, targets.width[group] ?? 0, targets.height[group] ?? 0);
      const aim = { layer, areas, largest, content, spacing };
      if (isTiled(view, layer, depth)) aimTiles(targets, tree, group, aim, order);
      else aimChildren(targets, tree, group, aim);
    }
  });
  return targets;
}

/** What does not depend on the shape that is aimed at. */
export interface Areas {
  readonly areas: Float64Array;
  /** All groups, the children of each parent together, the largest first. */
  readonly order: Uint32Array;
}

export function computeAreas(view: View, tree: GroupTree, spacing: Spacing): Areas {
  const areas = estimateAreas(view, tree, spacing);
  const order = new Uint32Array(view.layers.length > 1 ? tree.groupCount : 0);
  for (let group = 0; group < order.length; group += 1) order[group] = group;
  const compare = (a: number, b: number) => (areas[b] ?? 0) - (areas[a] ?? 0) || a - b;
  view.layers.forEach((layer, depth) => {
    if (!isTiled(view, layer, depth)) return;
    const end = tree.depthStart[depth + 1] ?? 0;
    for (let group = tree.depthStart[depth] ?? 0; group < end; group += 1) {
      order.subarray(tree.childStart[group], tree.childStart[group + 1]).sort(compare);
    }
  });
  return { areas, order };
}

/** Whether packed groups aim at tiles. The units of innermost ones fill few shapes: those take their own. */
function isTiled(view: View, layer: Layer, depth: number): boolean {
  return layer.layout === "pack" && layer.size === "count" && depth + 1 < view.layers.length;
}

/** The area of each group with its border, label and the gap around it, were it square. */
function estimateAreas(view: View, tree: GroupTree, spacing: Spacing): Float64Array {
  const areas = new Float64Array(tree.groupCount);
  const pitch = 1 + view.mark.padding;
  for (let depth = view.layers.length; depth >= 0; depth -= 1) {
    const inner = view.layers[depth];
    const largest = inner?.size === "uniform" ? findLargest(areas, tree, depth + 1) : null;
    const padding = spacing.padding[depth] ?? 0;
    const end = tree.depthStart[depth + 1] ?? 0;
    for (let group = tree.depthStart[depth] ?? 0; group < end; group += 1) {
      const first = tree.childStart[group] ?? 0;
      const last = tree.childStart[group + 1] ?? 0;
      let content = (tree.unitCount[group] ?? 0) * pitch * pitch;
      if (inner !== undefined) content = largest === null ? sum(areas, first, last) : (last - first) * largest;
      const side = Math.sqrt(content);
      areas[group] = (side + 3 * padding) * (side + 3 * padding + (spacing.labelHeight[depth] ?? 0));
    }
  }
  return areas;
}

function sum(values: Float64Array, from: number, to: number): number {
  let total = 0;
  for (let index = from; index < to; index += 1) total += values[index] ?? 0;
  return total;
}

/** Over all groups of the depth, not only siblings, so that bars of one width can be compared across their parents. */
function findLargest(areas: Float64Array, tree: GroupTree, depth: number): number {
  let largest = 0;
  const end = tree.depthStart[depth + 1] ?? 0;
  for (let group = tree.depthStart[depth] ?? 0; group < end; group += 1) largest = Math.max(largest, areas[group] ?? 0);
  return largest;
}

interface Aim {
  readonly layer: Layer;
  readonly areas: Float64Array;
  /** The area every group has where all are alike. */
  readonly largest: number | null;
  /** Of the parent. */
  readonly content: Extent;
  readonly spacing: Spacing;
}

function aimChildren(targets: Targets, tree: GroupTree, parent: number, aim: Aim): void {
  const { layer, areas, largest, content } = aim;
  const first = tree.childStart[parent] ?? 0;
  const last = tree.childStart[parent + 1] ?? 0;
  const total = largest === null ? sum(areas, first, last) : (last - first) * largest;
  const across = findAcross(layer, content, total / Math.max(1, last - first));
  const isAlongX = layer.layout === "fillX" || layer.layout === "listX";
  const depth = (tree.depth[parent] ?? 0) + 1;
  const gap = aim.spacing.padding[depth] ?? 0;
  for (let child = first; child < last; child += 1) {
    const area = largest ?? areas[child] ?? 0;
    const long = across === null ? Math.sqrt(area * layer.aspect) : area / across;
    const other = across ?? area / long;
    targets.width[child] = Math.max(1, (across === null || isAlongX ? long : other) - gap);
    targets.height[child] = Math.max(1, (across === null || isAlongX ? other : long) - gap);
  }
}

/** Groups that would be narrower than this, width over height, do not share the whole height: better several rows. */
const MIN_LISTED_ASPECT = 1 / 3;

/** The height that groups along X share, or the width along Y; null where each has its own shape. */
function findAcross(layer: Layer, content: Extent, meanArea: number): number | null {
  if (layer.layout === "pack") return null;
  const isAlongX = layer.layout === "fillX" || layer.layout === "listX";
  const space = isAlongX ? content.height : content.width;
  if (layer.layout === "fillX" || layer.layout === "fillY") return layer.limit ?? space;
  if (meanArea / space ** 2 >= MIN_LISTED_ASPECT) return space;
  return Math.sqrt(isAlongX ? meanArea / layer.aspect : meanArea * layer.aspect);
}

/** Tiles of a squarified treemap (Bruls, Huizing and van Wijk 2000): the largest first, in rows along the shorter side. */
function aimTiles(targets: Targets, tree: GroupTree, parent: number, aim: Aim, order: Uint32Array): void {
  const { layer, areas, content, spacing } = aim;
  const first = tree.childStart[parent] ?? 0;
  const last = tree.childStart[parent + 1] ?? 0;
  const gap = spacing.padding[(tree.depth[parent] ?? 0) + 1] ?? 0;
  const total = sum(areas, first, last);
  // Seen through the shape that groups aim at, tiles of that shape are squares.
  const stretch = Math.sqrt(layer.aspect);
  const scale = Math.sqrt(total / (content.width * content.height));
  let width = (content.width * scale) / stretch;
  let height = content.height * scale * stretch;
  for (let start = first; start < last; ) {
    const side = Math.min(width, height);
    let end = start;
    let area = 0;
    let worst = Number.POSITIVE_INFINITY;
    for (; end < last; end += 1) {
      const next = area + (areas[order[end] ?? 0] ?? 0);
      const largest = areas[order[start] ?? 0] ?? 0;
      const smallest = areas[order[end] ?? 0] ?? 0;
      const ratio = Math.max((side * side * largest) / (next * next), (next * next) / (side * side * smallest));
      if (ratio > worst) break;
      worst = ratio;
      area = next;
    }
    const across = area / side;
    const isColumn = width >= height;
    for (let index = start; index < end; index += 1) {
      const child = order[index] ?? 0;
      const along = (areas[child] ?? 0) / across;
      targets.width[child] = Math.max(1, (isColumn ? across : along) * stretch - gap);
      targets.height[child] = Math.max(1, (isColumn ? along : across) / stretch - gap);
    }
    if (isColumn) width -= across;
    else height -= across;
    start = end;
  }
}
