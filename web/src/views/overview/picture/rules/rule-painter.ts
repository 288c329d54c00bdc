// Rules in the picture: bars above groups, signs in the corners of squares. Paints; where things stand is elsewhere.

import type { Severity } from "../../../../api/generated.ts";
import type { Pen } from "../../../../charts/pen.ts";
import { severityRank } from "../../../../data/row-rules.ts";
import type { Projection } from "../../../../layers/squares/marks.ts";
import type { UnitLayout } from "../../../../layout/layout.ts";
import { foldLines } from "../../../../parts/rules/fold.ts";
import type { Size } from "../camera.ts";
import { boxOf, FONT, isInSight } from "../group-painter.ts";
import { squareOf } from "../outline-painter.ts";
import { type Tokens, toCss } from "../tokens.ts";
import { stackBars } from "./rule-bars.ts";
import { listStates, type RuleMarks, type ShownRule } from "./rule-marks.ts";

/** Groups that are smaller are not painted: the one around them is marked instead. */
const SMALLEST_BOX_PX = 4;
const MORE_FONT_PX = 9;
const TRACK = 0.24;
const LEAST_FILLED_PX = 2;

const SMALLEST_SIDE_PX = 30;
/** Small enough to stand below the value that is written into the square. */
const SIGN_SHARE = 0.1;
const SMALLEST_SIGN_PX = 5;
const LARGEST_SIGN_PX = 6;
const SIGN_GAP_PX = 2;
const SIGN_INSET_PX = 4;
const SIGN_FOOT_PX = 2;

/** How many groups were marked. */
export function paintRuleBars(
  pen: Pen,
  layout: UnitLayout,
  marks: RuleMarks,
  camera: Projection,
  viewport: Size,
  tokens: Tokens,
): number {
  const groups = new Set<number>();
  for (const group of marks.groups) groups.add(findPainted(layout, group, camera));
  groups.delete(0);
  let painted = 0;
  for (const group of groups) {
    if (!isInSight(boxOf(layout, group, camera), viewport)) continue;
    paintStack(pen, layout, marks, group, camera, tokens);
    painted += 1;
  }
  pen.globalAlpha = 1;
  return painted;
}

function findPainted(layout: UnitLayout, innermost: number, camera: Projection): number {
  let group = innermost;
  while (group > 0) {
    const { width, height } = boxOf(layout, group, camera);
    if (Math.min(width, height) >= SMALLEST_BOX_PX) return group;
    group = layout.groups.parent[group] ?? 0;
  }
  return group;
}

function paintStack(
  pen: Pen,
  layout: UnitLayout,
  marks: RuleMarks,
  group: number,
  camera: Projection,
  tokens: Tokens,
): void {
  const { isStrip, bars, folded } = stackBars(layout, marks, group, camera);
  for (const { rule, left, top, width, height, share } of bars) {
    pen.fillStyle = toCss(marks.rules[rule]?.color ?? tokens.muted);
    if (isStrip) {
      fillBox(pen, left, top, width, height);
      continue;
    }
    const filled = Math.max(LEAST_FILLED_PX, share * height);
    pen.globalAlpha = TRACK;
    fillBox(pen, left, top, width, height);
    pen.globalAlpha = 1;
    fillBox(pen, left, top + height - filled, width, filled);
  }
  const last = bars.at(-1);
  if (isStrip || folded === 0 || last === undefined) return;
  pen.font = `600 ${MORE_FONT_PX}px ${FONT}`;
  pen.textBaseline = "alphabetic";
  pen.fillStyle = toCss(tokens.muted);
  pen.fillText(`+${folded}`, last.left + last.width + 3, last.top + last.height);
}

function fillBox(pen: Pen, left: number, top: number, width: number, height: number): void {
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.fill();
}

/** A sign for each rule in the lower corner of squares that are near enough; of what is past only the outline. */
export function paintUnitSigns(
  pen: Pen,
  layout: UnitLayout,
  marks: RuleMarks,
  camera: Projection,
  viewport: Size,
  tokens: Tokens,
): number {
  if (camera.scale < SMALLEST_SIDE_PX) return 0;
  let painted = 0;
  for (const row of marks.rows) {
    const box = squareOf(layout, row, camera);
    if (!isInSight(box, viewport)) continue;
    const side = Math.min(LARGEST_SIGN_PX, Math.max(SMALLEST_SIGN_PX, box.width * SIGN_SHARE));
    const states = listStates(marks, row);
    const ranks = states.map(({ rule }) => severityRank(marks.rules[rule]?.severity ?? "info"));
    const width = box.width - 2 * SIGN_INSET_PX;
    const sizes = states.map(() => side);
    const shown = foldLines(sizes, ranks, { width, lines: 1, gap: SIGN_GAP_PX, more: 0 });
    shown.forEach((place, index) => {
      const state = states[place];
      const left = box.left + box.width - SIGN_INSET_PX - (shown.length - index) * (side + SIGN_GAP_PX) + SIGN_GAP_PX;
      const top = box.top + box.height - SIGN_FOOT_PX - side;
      paintSign(pen, { left, top, side }, marks.rules[state?.rule ?? 0], state?.isPast ?? false, tokens);
    });
    painted += 1;
  }
  return painted;
}

interface SignPlace {
  readonly left: number;
  readonly top: number;
  readonly side: number;
}

/** On a ground of its own: the square below may have any color. Its shape tells how severe the rule is. */
function paintSign(pen: Pen, place: SignPlace, rule: ShownRule | undefined, isPast: boolean, tokens: Tokens): void {
  const { left, top, side } = place;
  const color = toCss(rule?.color ?? tokens.muted);
  const severity = rule?.severity ?? "warning";
  pen.fillStyle = toCss(tokens.bg);
  fillBox(pen, left - 1, top - 1, side + 2, side + 2);
  pen.beginPath();
  if (!isPast) {
    traceSign(pen, severity, left, top, side);
    pen.fillStyle = color;
    pen.fill();
    return;
  }
  traceSign(pen, severity, left + 0.75, top + 0.75, side - 1.5);
  pen.strokeStyle = color;
  pen.lineWidth = 1.5;
  pen.stroke();
}

function traceSign(pen: Pen, severity: Severity, left: number, top: number, side: number): void {
  if (severity === "warning") pen.rect(left, top, side, side);
  else if (severity === "info") pen.roundRect(left, top, side, side, side / 2);
  else {
    const half = side / 2;
    pen.moveTo(left + half, top - 0.5);
    pen.lineTo(left + side + 0.5, top + half);
    pen.lineTo(left + half, top + side + 0.5);
    pen.lineTo(left - 0.5, top + half);
    pen.lineTo(left + half, top - 0.5);
  }
}
