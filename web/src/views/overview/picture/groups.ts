// Groups of the picture: which one is at a point, its place in the hierarchy, its rows, and what it is in a link. Pure.

import type { Projection } from "../../../layers/squares/marks.ts";
import type { ShownUnits } from "../../../layout/grammar.ts";
import { labelOf, type UnitLayout } from "../../../layout/layout.ts";
import { encodeGroup, type Selection } from "../../../state/selection.ts";
import type { Box } from "./camera.ts";

/** Page pixels at the edge of a group that count as the group itself, not as the space between what is in it. */
const EDGE_PX = 5;

/** The innermost group at a point of the layout; null: none. */
export function findGroup({ groups }: UnitLayout, x: number, y: number): number | null {
  let innermost: number | null = null;
  for (let group = 1; group < groups.count; group += 1) {
    const left = groups.x[group] ?? 0;
    const top = groups.y[group] ?? 0;
    const isInside =
      x >= left && y >= top && x < left + (groups.width[group] ?? 0) && y < top + (groups.height[group] ?? 0);
    // Children come after their parents.
    if (isInside) innermost = group;
  }
  return innermost;
}

/** Who points at the space between things means none of them: of outer groups only the name and the edge count. */
export function pointsAtGroup(layout: UnitLayout, group: number, x: number, y: number, { scale }: Projection): boolean {
  const { groups, layers } = layout;
  const depth = groups.depth[group] ?? 0;
  const label = groups.labelHeight[depth] ?? 0;
  if (depth === layers.length) return true;
  const right = (groups.x[group] ?? 0) + (groups.width[group] ?? 0) - x;
  const bottom = (groups.y[group] ?? 0) + (groups.height[group] ?? 0) - y;
  const down = y - (groups.y[group] ?? 0);
  const edge = Math.min(x - (groups.x[group] ?? 0), down, right, bottom) * scale;
  return down <= label + (groups.padding[depth] ?? 0) || edge <= EDGE_PX;
}

export function groupBox({ groups }: UnitLayout, group: number): Box {
  return {
    left: groups.x[group] ?? 0,
    top: groups.y[group] ?? 0,
    width: groups.width[group] ?? 0,
    height: groups.height[group] ?? 0,
  };
}

/** From the outermost to the group itself. */
export function listAncestry({ groups }: UnitLayout, group: number): readonly number[] {
  const path: number[] = [];
  for (let at = group; at > 0; at = groups.parent[at] ?? 0) path.unshift(at);
  return path;
}

export function listLabels(layout: UnitLayout, group: number): readonly string[] {
  return listAncestry(layout, group).map((at) => labelOf(layout, at));
}

/** A group is what one looks at where at least this share of the window is in it, or the other way round. */
const IN_SIGHT = 0.4;

/** The groups around the middle of a window, from the outermost to the innermost that fills much of it. */
export function findPath(layout: UnitLayout, window: Box): readonly number[] {
  const { left, top, width, height } = window;
  const inner = findGroup(layout, left + width / 2, top + height / 2);
  if (inner === null) return [];
  const path = listAncestry(layout, inner);
  const isLookedAt = (group: number) => {
    const box = groupBox(layout, group);
    const across = Math.min(box.left + box.width, left + width) - Math.max(box.left, left);
    const down = Math.min(box.top + box.height, top + height) - Math.max(box.top, top);
    return across >= IN_SIGHT * width || down >= IN_SIGHT * height;
  };
  return path.slice(0, path.findLastIndex(isLookedAt) + 1);
}

/** The rows that are drawn in a group, in order. */
export function listGroupRows({ groups, group: groupOf, size }: UnitLayout, group: number): readonly number[] {
  const isInside = new Uint8Array(groups.count);
  for (let at = group; at < groups.count; at += 1) {
    if (at === group || isInside[groups.parent[at] ?? 0] === 1) isInside[at] = 1;
  }
  const rows: number[] = [];
  groupOf.forEach((at, row) => {
    if (isInside[at] === 1 && (size[row] ?? 0) > 0) rows.push(row);
  });
  return rows;
}

/**
 * What a click on a group selects: a workload or a node where that is what it is, else what its units have in common. Null
 * where that cannot be said in words (a range of a metric, all the small ones together): then its units are.
 */
export function selectionOfGroup(layout: UnitLayout, group: number, scope: ShownUnits): Selection | null {
  const steps: { attribute: string; name: string | null }[] = [];
  let apart: { attribute: string; name: string } | undefined;
  for (const at of listAncestry(layout, group)) {
    const layer = layout.layers[(layout.groups.depth[at] ?? 0) - 1];
    const key = layer?.keys[layout.groups.key[at] ?? 0];
    if (layer === undefined || (key?.kind !== "name" && key?.kind !== "missing")) return null;
    steps.push({ attribute: layer.attribute, name: key.kind === "name" ? key.name : null });
    if (key.kind === "missing") apart = key.apart ?? apart;
  }
  const last = steps.at(-1);
  if (last === undefined) return null;
  if ((last.attribute === "workload" || last.attribute === "node") && last.name !== null) {
    return { kind: last.attribute, key: last.name };
  }
  const distinctSteps = steps.filter(isInformative);
  return {
    kind: "group",
    // A workload that is one square is selected with all GPUs that it requests.
    key: encodeGroup({
      scope: scope === "waiting" ? "requested" : scope,
      steps: apart === undefined ? distinctSteps : [...distinctSteps, apart],
    }),
  };
}

/** Units without a project have no user and no workload, either: to say so once is enough. */
function isInformative(
  step: { readonly name: string | null },
  index: number,
  steps: readonly { readonly name: string | null }[],
) {
  return index === 0 || step.name !== null || steps[index - 1]?.name !== null;
}

/** The next group of the same depth in a direction of counting; null at the end. */
export function findSibling({ groups }: UnitLayout, group: number, step: 1 | -1): number | null {
  const depth = groups.depth[group];
  for (let at = group + step; at > 0 && at < groups.count; at += step) if (groups.depth[at] === depth) return at;
  return null;
}
