// Where the bars of rules stand above a group, in page pixels: one strip with a part for each rule where the gap between
// groups is narrow, bars as high as the share of its units where it is wide. What has no room is folded. Pure.

import { severityRank } from "../../../../data/row-rules.ts";
import type { Projection } from "../../../../layers/squares/marks.ts";
import type { UnitLayout } from "../../../../layout/layout.ts";
import { foldRow } from "../../../../parts/rules/fold.ts";
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

/** A wider gap has room for bars. */
const BARS_FROM_PX = 8;
const STRIP_PX = 3;
const SMALLEST_STRIP_PX = 2;
const SMALLEST_PART_PX = 5;
const BAR_WIDTH_PX = 7;
const HIGHEST_BAR_PX = 26;
const BAR_GAP_PX = 2;
const MORE_PX = 16;
/** Between the bars and the box they stand on. */
const FOOT_PX = 1;

/** The gap above a group, in page pixels. */
export function gapAbove({ groups }: UnitLayout, group: number, { scale }: Projection): number {
  return (groups.padding[groups.depth[group] ?? 0] ?? 0) * scale;
}

export function stackBars(layout: UnitLayout, marks: RuleMarks, group: number, camera: Projection): BarStack {
  const broken = listBroken(marks, group);
  const gap = gapAbove(layout, group, camera);
  const isStrip = gap < BARS_FROM_PX;
  const box = boxOf(layout, group, camera);
  const ranks = broken.map((rule) => severityRank(marks.rules[rule]?.severity ?? "info"));
  const size = isStrip ? SMALLEST_PART_PX : BAR_WIDTH_PX;
  const sizes = broken.map(() => size);
  const fitting = foldRow(sizes, ranks, box.width, isStrip ? 0 : BAR_GAP_PX, isStrip ? 0 : MORE_PX);
  // However narrow the group: that it is marked must be seen.
  const places = fitting.length > 0 ? fitting : [ranks.indexOf(Math.min(...ranks))];
  const shown = places.flatMap((place) => broken[place] ?? []);
  const units = Math.max(1, layout.groups.unitCount[group] ?? 1);
  const place = isStrip ? placePart(box, gap, shown.length) : placeBar(box, gap);
  const bars = shown.map((rule, index) => ({ rule, share: countIn(marks, rule, group) / units, ...place(index) }));
  return { isStrip, bars, folded: broken.length - shown.length };
}

function placePart(box: PixelBox, gap: number, parts: number): (index: number) => PixelBox {
  const height = Math.max(SMALLEST_STRIP_PX, Math.min(STRIP_PX, gap - FOOT_PX));
  const width = box.width / Math.max(1, parts);
  return (index) => ({ left: box.left + index * width, top: box.top - FOOT_PX - height, width, height });
}

/** The whole column, of which the share is filled. */
function placeBar(box: PixelBox, gap: number): (index: number) => PixelBox {
  const height = Math.min(HIGHEST_BAR_PX, gap - FOOT_PX - 1);
  const left = (index: number) => box.left + index * (BAR_WIDTH_PX + BAR_GAP_PX);
  return (index) => ({ left: left(index), top: box.top - FOOT_PX - height, width: BAR_WIDTH_PX, height });
}

export interface PointedRule {
  readonly group: number;
  readonly rule: number;
}

/** The bar at a point of the page; thin ones are hit anywhere in the gap they stand in. */
export function findBar(
  layout: UnitLayout,
  marks: RuleMarks,
  camera: Projection,
  x: number,
  y: number,
): PointedRule | null {
  const innermost = layout.layers.length;
  const padding = layout.groups.padding[innermost] ?? 0;
  const [left, top] = toLayout(camera, x, y);
  const group = findGroup(layout, left, top + padding);
  if (group === null || layout.groups.depth[group] !== innermost || top >= (layout.groups.y[group] ?? 0)) return null;
  const { bars } = stackBars(layout, marks, group, camera);
  const bar = bars.find((one) => x >= one.left - 1 && x < one.left + one.width + 1);
  return bar ? { group, rule: bar.rule } : null;
}
