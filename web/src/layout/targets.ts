// From the number of units in each group to the space it should aim at: areas from the inside out, shapes from the
// outside in. Only aims: how large a group really becomes is measured from its arranged contents.

import type { Extent } from "./boxes.ts";
import type { Layer, View } from "./grammar.ts";
import type { GroupTree } from "./group.ts";

/** By depth; depth 0, everything, has neither border nor label. Lengths in sides of a unit. */
export interface Spacing {
  /** Inside the border of a group of this depth, and between it and its siblings. */
  readonly padding: readonly number[];
  /** Kept free for the label, inside the border. */
  readonly labelHeight: readonly number[];
}

/** Of the side of a square group of the layer's mean size. Outer layers get more, to be told apart when seen whole. */
const PADDING_SHARE = 0.03;
const LABEL_SHARE = 0.08;
const MIN_PADDING = 0.25;
const MIN_LABEL_HEIGHT = 1;

export function computeSpacing(view: View, tree: GroupTree, labelHeights: readonly number[] | null): Spacing {
  const padding = [0];
  const labelHeight = [0];
  view.layers.forEach((layer, index) => {
    const groups = (tree.depthStart[index + 2] ?? 0) - (tree.depthStart[index + 1] ?? 0);
    const side = Math.sqrt(tree.rows.length / Math.max(1, groups));
    padding.push(layer.padding ?? Math.max(MIN_PADDING, PADDING_SHARE * side));
    labelHeight.push(layer.label ? (labelHeights?.[index] ?? Math.max(MIN_LABEL_HEIGHT, LABEL_SHARE * side)) : 0);
  });
  return { padding, labelHeight };
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
export function computeTargets(view: View, tree: GroupTree, spacing: Spacing, aspect: number): Targets {
  const areas = estimateAreas(view, tree, spacing);
  const targets: Targets = { width: new Float64Array(tree.groupCount), height: new Float64Array(tree.groupCount) };
  targets.width[0] = Math.sqrt((areas[0] ?? 0) * aspect);
  targets.height[0] = Math.sqrt((areas[0] ?? 0) / aspect);
  view.layers.forEach((layer, depth) => {
    const largest = layer.size === "uniform" ? findLargest(areas, tree, depth + 1) : null;
    const end = tree.depthStart[depth + 1] ?? 0;
    for (let group = tree.depthStart[depth] ?? 0; group < end; group += 1) {
      const content = contentOf(spacing, depth, targets.width[group] ?? 0, targets.height[group] ?? 0);
      aimChildren(targets, tree, group, { layer, areas, largest, content, spacing });
    }
  });
  return targets;
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
