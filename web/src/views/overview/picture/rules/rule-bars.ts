// Where the bars of rules stand above the units of a group, in page pixels: one strip with a part for each rule on the edge
// of a group seen from afar, bars as high as the share of its units between edge and units of one that is near. They never
// reach above the edge: the name of the group around it may stand there. What has no room is folded. Pure.

import { severityRank } from "../../../../data/row-rules.ts";
import type { Projection } from "../../../../layers/squares/marks.ts";
import type { UnitLayout } from "../../../../layout/layout.ts";
import { foldLines } from "../../../../parts/rules/fold.ts";
import { toLayout } from "../camera.ts";
import { boxOf, type PixelBox } from "../group-painter.ts";
import { findGroup } from "../groups.ts";
import { countIn, listBroken, type RuleMarks } from "./rule-marks.ts";

export interface RuleBar extends PixelBox {
  readonly rule: number;
  /** Of the group's units. */
  readonly share: number;
}

export interface BarStack {
  readonly isStrip: boolean;
  readonly bars: readonly RuleBar[];
  /** Rules that have no bar, for want of room. */
  readonly folded: number;
}

/** A wider space between edge and units has room for bars. */
const BARS_FROM_PX = 9;
const STRIP_PX = 3;
const SMALLEST_STRIP_PX = 2;
/** How far the strip reaches over the edge. */
const OVER_EDGE_PX = 1;
const SMALLEST_PART_PX = 5;
const BAR_WIDTH_PX = 7;
const HIGHEST_BAR_PX = 26;
/** A pointer so near above the edge still means the strip on it. */
const NEAR_PX = 2;
const BAR_GAP_PX = 2;
const MORE_PX = 16;
/** Between the bars and the edge, and between them and the units. */
const FOOT_PX = 2;

/** Between the edge of a group and what is in it, in page pixels. */
function spaceInside({ groups }: UnitLayout, group: number, { scale }: Projection): number {
  return (groups.padding[groups.depth[group] ?? 0] ?? 0) * scale;
}

export function stackBars(layout: UnitLayout, marks: RuleMarks, group: number, camera: Projection): BarStack {
  const broken = listBroken(marks, group);
  const space = spaceInside(layout, group, camera);
  const isStrip = space < BARS_FROM_PX;
  const box = boxOf(layout, group, camera);
  const ranks = broken.map((rule) => severityRank(marks.rules[rule]?.severity ?? "info"));
  const size = isStrip ? SMALLEST_PART_PX : BAR_WIDTH_PX;
  const sizes = broken.map(() => size);
  const fitting = foldLines(sizes, ranks, {
    width: isStrip ? box.width : box.width - 2 * space,
    lines: 1,
    gap: isStrip ? 0 : BAR_GAP_PX,
    more: isStrip ? 0 : MORE_PX,
  });
  // However narrow the group: that it is marked must be seen.
  const places = fitting.length > 0 ? fitting : [ranks.indexOf(Math.min(...ranks))];
  const shown = places.flatMap((place) => broken[place] ?? []);
  const units = Math.max(1, layout.groups.unitCount[group] ?? 1);
  const place = isStrip ? placePart(box, space, shown.length) : placeBar(box, space);
  const bars = shown.map((rule, index) => ({ rule, share: countIn(marks, rule, group) / units, ...place(index) }));
  return { isStrip, bars, folded: broken.length - shown.length };
}

function placePart(box: PixelBox, space: number, parts: number): (index: number) => PixelBox {
  const height = Math.max(SMALLEST_STRIP_PX, Math.min(STRIP_PX, space - OVER_EDGE_PX));
  const width = box.width / Math.max(1, parts);
  const top = Math.round(box.top) - OVER_EDGE_PX;
  return (index) => ({ left: box.left + index * width, top, width, height });
}

/** The whole column, of which the share is filled. */
function placeBar(box: PixelBox, space: number): (index: number) => PixelBox {
  const height = Math.min(HIGHEST_BAR_PX, space - 2 * FOOT_PX);
  const top = box.top + space - FOOT_PX - height;
  const left = (index: number) => box.left + space + index * (BAR_WIDTH_PX + BAR_GAP_PX);
  return (index) => ({ left: left(index), top, width: BAR_WIDTH_PX, height });
}

export interface PointedRule {
  readonly group: number;
  readonly rule: number;
}

/** The bar at a point of the page; it is hit anywhere between the edge and the units. */
export function findBar(
  layout: UnitLayout,
  marks: RuleMarks,
  camera: Projection,
  x: number,
  y: number,
): PointedRule | null {
  const group = findGroup(layout, ...toLayout(camera, x, y + NEAR_PX));
  if (group === null || layout.groups.depth[group] !== layout.layers.length) return null;
  const { top } = boxOf(layout, group, camera);
  if (y > top + Math.max(STRIP_PX, spaceInside(layout, group, camera))) return null;
  const bar = stackBars(layout, marks, group, camera).bars.find(
    ({ left, width }) => x >= left - 1 && x < left + width + 1,
  );
  return bar ? { group, rule: bar.rule } : null;
}
