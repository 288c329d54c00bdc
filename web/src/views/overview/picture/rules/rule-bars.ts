// Where the rules that a group or a unit breaks are marked, in page pixels. Every rule has one slot, the same for units, hosts,
// workloads and all groups around them, filled from the left by the share of units that break it. The slots of a group stand on
// its upper edge, between its squares and those of the group above it, or right of its name; those of a unit in the gap below
// it: never on a square. Pure.

import type { Projection } from "../../../../layers/squares/marks.ts";
import type { UnitLayout } from "../../../../layout/layout.ts";
import { toLayout } from "../camera.ts";
import { boxOf, type PixelBox } from "../group-painter.ts";
import { findGroup, listAncestry } from "../groups.ts";
import { squareOf } from "../outline-painter.ts";
import { countIn, listStates, type RuleMarks } from "./rule-marks.ts";

/** The whole slot. */
export interface RuleSlot extends PixelBox {
  readonly rule: number;
  /** Of the group's units. */
  readonly share: number;
  /** How much of its width is filled. */
  readonly filled: number;
  /** Nobody breaks it any more. */
  readonly isPast: boolean;
}

/** A slot is at most this wide when seen whole; nearer it grows with the units. */
const WIDEST_SLOT_PX = 18;
const SLOT_SHARE = 0.6;
const HIGHEST_SLOT_PX = 5;
/** Between the slots, and the squares or the edge. */
const MARGIN_PX = 0.5;
/** Of the space inside: what slots on the edge take, half of which is outside. */
const EDGE_SHARE = 1.3;
/** Next to a name: the width of each slot, limited by the width of the group, and only if names are readable. */
const HEAD_PITCH_PX = 9;
const MOST_OF_HEAD = 0.5;
const LEAST_HEAD_PX = 12;
const HEAD_MARGIN_PX = 8;
/** Where there is less than this between the edge and what is in it, the group around it is marked instead. */
const LEAST_SPACE_PX = 1.5;
const SMALLEST_BOX_PX = 4;
/** Slots that are wider have a gap between them. */
const GAP_FROM_PX = 4;
/** The least share of a slot that stays empty unless the rule is broken by all: 88 % must not look like 100 %. */
const LEAST_EMPTY = 0.12;
const LEAST_FILLED_PX = 1.5;
/** Squares that are larger have slots of their own. */
const SMALLEST_SIDE_PX = 30;
/** A pointer so near means a slot, however low it is. */
const NEAR_PX = 2;

/** Between the edge of a group and what is in it, in page pixels. */
function spaceInside({ groups }: UnitLayout, group: number, { scale }: Projection): number {
  return (groups.padding[groups.depth[group] ?? 0] ?? 0) * scale;
}

/** The slots of the rules that any unit of the group breaks. */
export function placeGroupSlots(
  layout: UnitLayout,
  marks: RuleMarks,
  group: number,
  camera: Projection,
): readonly RuleSlot[] {
  const row = placeHead(layout, marks, group, camera) ?? placeEdge(layout, group, camera);
  const units = Math.max(1, layout.groups.unitCount[group] ?? 1);
  return marks.rules.flatMap((_, rule) => {
    const broken = countIn(marks, rule, group);
    return broken === 0 ? [] : [placeSlot(row, marks, rule, camera, broken / units, false)];
  });
}

/** On the upper edge: half of it in the gap to the siblings above, which is as high as the space inside. */
function placeEdge(layout: UnitLayout, group: number, camera: Projection): PixelBox {
  const space = spaceInside(layout, group, camera);
  const { left, top, width } = boxOf(layout, group, camera);
  const isFramed = layout.groups.depth[group] === 1 && layout.layers.length > 1;
  const height = Math.min(HIGHEST_SLOT_PX, isFramed ? space - 2 * MARGIN_PX : EDGE_SHARE * space);
  const inset = isFramed ? space : 0;
  return { left: left + inset, top: top + space - MARGIN_PX - height, width: width - 2 * inset, height };
}

/** At the right end of the line of an outer group's name; null where that would leave the name too little. */
function placeHead(layout: UnitLayout, marks: RuleMarks, group: number, camera: Projection): PixelBox | null {
  const { groups, layers } = layout;
  const depth = groups.depth[group] ?? 0;
  const room = (groups.labelHeight[depth] ?? 0) * camera.scale;
  const box = boxOf(layout, group, camera);
  const width = marks.slotCount * HEAD_PITCH_PX;
  if (depth === layers.length || room < LEAST_HEAD_PX || width > MOST_OF_HEAD * box.width) return null;
  const space = spaceInside(layout, group, camera);
  const height = HIGHEST_SLOT_PX;
  const right = box.left + box.width - Math.max(space, HEAD_MARGIN_PX);
  return { left: right - width, top: box.top + space + (room - height) / 2, width, height };
}

/** What slots take from the line of a group's name. */
export function headWidth(layout: UnitLayout, marks: RuleMarks, group: number, camera: Projection): number {
  const isMarked = layout.groups.depth[group] === 1 && marks.rules.some((_, rule) => countIn(marks, rule, group) > 0);
  const head = isMarked ? placeHead(layout, marks, group, camera) : null;
  return head === null ? 0 : head.width + HEAD_MARGIN_PX;
}

/** Those of one unit; none where squares are small, or nothing is between them. */
export function placeUnitSlots(
  layout: UnitLayout,
  marks: RuleMarks,
  unit: number,
  camera: Projection,
): readonly RuleSlot[] {
  const gap = layout.unitGap * camera.scale;
  if (camera.scale < SMALLEST_SIDE_PX || gap < LEAST_SPACE_PX) return [];
  const { left, top, width, height } = squareOf(layout, unit, camera);
  const slotHeight = Math.min(HIGHEST_SLOT_PX, gap - 2 * MARGIN_PX);
  const row = { left, top: top + height + (gap - slotHeight) / 2, width, height: slotHeight };
  return listStates(marks, unit).map(({ rule, isPast }) => placeSlot(row, marks, rule, camera, 1, isPast));
}

function placeSlot(
  row: PixelBox,
  { slots, slotCount }: RuleMarks,
  rule: number,
  { scale }: Projection,
  share: number,
  isPast: boolean,
): RuleSlot {
  const pitch = Math.min(row.width / Math.max(1, slotCount), Math.max(WIDEST_SLOT_PX, SLOT_SHARE * scale));
  const width = pitch >= GAP_FROM_PX ? pitch - 1 : pitch;
  const most = share >= 1 ? width : width * (1 - LEAST_EMPTY);
  const filled = Math.min(most, Math.max(Math.min(LEAST_FILLED_PX, most), share * width));
  const left = row.left + (slots[rule] ?? 0) * pitch;
  return { rule, share, filled, isPast, left, top: row.top, width, height: row.height };
}

/** Groups whose slots are painted: innermost ones, or what is around them where they are too small, and the outermost. */
export function listMarkedGroups(layout: UnitLayout, marks: RuleMarks, camera: Projection): ReadonlySet<number> {
  const groups = new Set<number>();
  for (const innermost of marks.groups) {
    const path = listAncestry(layout, innermost);
    const inner = path.findLast((group) => hasRoom(layout, group, camera));
    if (inner === undefined) continue;
    groups.add(inner);
    const outer = path[0];
    if (outer !== undefined && hasRoom(layout, outer, camera)) groups.add(outer);
  }
  return groups;
}

function hasRoom(layout: UnitLayout, group: number, camera: Projection): boolean {
  const { width, height } = boxOf(layout, group, camera);
  return Math.min(width, height) >= SMALLEST_BOX_PX && spaceInside(layout, group, camera) >= LEAST_SPACE_PX;
}

export interface PointedRule {
  readonly group: number;
  readonly rule: number;
}

/** The slot of a group at a point of the page, or near above or below it. */
export function findBar(
  layout: UnitLayout,
  marks: RuleMarks,
  camera: Projection,
  x: number,
  y: number,
): PointedRule | null {
  // What stands on the edge is partly outside.
  const inner = findGroup(layout, ...toLayout(camera, x, y + NEAR_PX));
  if (inner === null) return null;
  const { depth } = layout.groups;
  const isMarked = (group: number) => depth[group] === 1 || depth[group] === layout.layers.length;
  for (const group of listAncestry(layout, inner).filter(isMarked)) {
    if (!hasRoom(layout, group, camera)) continue;
    const slot = placeGroupSlots(layout, marks, group, camera).find(
      ({ left, top, width, height }) =>
        x >= left - 0.5 && x < left + width + 0.5 && y >= top - NEAR_PX && y < top + height + NEAR_PX,
    );
    if (slot) return { group, rule: slot.rule };
  }
  return null;
}
