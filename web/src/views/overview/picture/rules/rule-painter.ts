// Paints the slots of rules on groups and below squares; their positions are in rule-bars.ts.

import type { Pen } from "../../../../charts/pen.ts";
import type { Projection } from "../../../../layers/squares/marks.ts";
import type { UnitLayout } from "../../../../layout/layout.ts";
import type { Size } from "../camera.ts";
import { boxOf, isVisible } from "../group-painter.ts";
import { squareOf } from "../outline-painter.ts";
import { type Tokens, toCss } from "../tokens.ts";
import { listMarkedGroups, placeGroupSlots, placeUnitSlots, type RuleSlot } from "./rule-bars.ts";
import type { RuleMarks } from "./rule-marks.ts";

/** How much of a color the empty part of a slot has. */
const TRACK = 0.26;

/** How many groups were marked. */
export function paintRuleBars(
  pen: Pen,
  layout: UnitLayout,
  marks: RuleMarks,
  camera: Projection,
  viewport: Size,
  tokens: Tokens,
): number {
  let painted = 0;
  for (const group of listMarkedGroups(layout, marks, camera)) {
    if (!isVisible(boxOf(layout, group, camera), viewport)) continue;
    for (const slot of placeGroupSlots(layout, marks, group, camera)) paintSlot(pen, slot, marks, tokens);
    painted += 1;
  }
  return painted;
}

/** Below each square that is near enough; of what is past only the outline. How many units were marked. */
export function paintUnitSlots(
  pen: Pen,
  layout: UnitLayout,
  marks: RuleMarks,
  camera: Projection,
  viewport: Size,
  tokens: Tokens,
): number {
  let painted = 0;
  for (const row of marks.rows) {
    if (!isVisible(squareOf(layout, row, camera), viewport)) continue;
    const slots = placeUnitSlots(layout, marks, row, camera);
    if (slots.length === 0) continue;
    for (const slot of slots) paintSlot(pen, slot, marks, tokens);
    painted += 1;
  }
  return painted;
}

function paintSlot(pen: Pen, slot: RuleSlot, { rules }: RuleMarks, { muted }: Tokens): void {
  const { left, top, width, height, filled, isPast } = slot;
  const color = toCss(rules[slot.rule]?.color ?? muted);
  if (isPast) {
    pen.beginPath();
    pen.rect(left + 0.5, top + 0.5, Math.max(0.5, width - 1), Math.max(0.5, height - 1));
    pen.strokeStyle = color;
    pen.lineWidth = 1;
    pen.stroke();
    return;
  }
  pen.fillStyle = color;
  if (filled < width) {
    pen.globalAlpha = TRACK;
    fillBox(pen, left, top, width, height);
    pen.globalAlpha = 1;
  }
  fillBox(pen, left, top, filled, height);
}

function fillBox(pen: Pen, left: number, top: number, width: number, height: number): void {
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.fill();
}
