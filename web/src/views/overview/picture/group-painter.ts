// Paints boxes and names of groups on a 2D canvas behind the squares. Those that are too small are skipped, so that
// names appear when zooming in.

import { splitCharacters } from "../../../base/characters.ts";
import { formatCount } from "../../../base/format.ts";
import type { Pen } from "../../../charts/pen.ts";
import type { Projection } from "../../../layers/squares/marks.ts";
import { labelOf, type UnitLayout } from "../../../layout/layout.ts";
import type { Size } from "./camera.ts";
import { type Tokens, toCss } from "./tokens.ts";

/** In page pixels. */
export interface PixelBox {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export const FONT = '"Inter Variable", system-ui, sans-serif';
const USUAL_FONT_PX = [0, 13, 12, 11] as const;
const LARGEST_FONT_PX = 20;
const FONT_GROWTH = 0.15;
const SMALLEST_FONT_PX = 9;
/** A name that does not fit at this size is cut. */
const SMALLEST_CUT_FONT_PX = 10;
/** Of the room kept for a name. */
const FONT_SHARE = 0.78;
const SMALLEST_BOX_PX = 4;
const FEWEST_LETTERS = 3;
const SMALLEST_INDENT_PX = 8;
const HOST_RADIUS_PX = 3;
/** Of its size: what a letter of a host's name takes on average. */
const WIDEST_LETTER = 0.6;
const STANDING_FONT_PX = 12;
/** Names that differ only in their number keep it when they are cut. */
const NUMBER_AT_END = /[-_.:]?\d{1,4}$/;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** How many groups were painted. */
export function paintGroups(
  context: Pen,
  layout: UnitLayout,
  camera: Projection,
  viewport: Size,
  tokens: Tokens,
  /** What else stands in the line of a group's name, from the right; in page pixels. */
  takenOf: (group: number) => number = () => 0,
): number {
  const { groups, layers } = layout;
  const innermost = layers.length;
  let painted = 0;
  for (let group = 1; group < groups.count; group += 1) {
    const box = boxOf(layout, group, camera);
    if (!isVisible(box, viewport) || Math.min(box.width, box.height) < SMALLEST_BOX_PX) continue;
    const depth = groups.depth[group] ?? 0;
    if (depth === 1 || depth === innermost) paintBox(context, box, depth, depth === 1 && innermost > 0, tokens);
    if (layers[depth - 1]?.attribute === "node") paintFrame(context, box, tokens);
    paintLabel(context, layout, group, box, camera, tokens, takenOf(group));
    painted += 1;
  }
  return painted;
}

export function boxOf({ groups }: UnitLayout, group: number, { scale, offsetX, offsetY }: Projection): PixelBox {
  return {
    left: (groups.x[group] ?? 0) * scale + offsetX,
    top: (groups.y[group] ?? 0) * scale + offsetY,
    width: (groups.width[group] ?? 0) * scale,
    height: (groups.height[group] ?? 0) * scale,
  };
}

export function isVisible({ left, top, width, height }: PixelBox, viewport: Size): boolean {
  return left + width > 0 && top + height > 0 && left < viewport.width && top < viewport.height;
}

/** Whole pixels for the outline: a line of one pixel between two is one of two, blurred. */
function paintBox(
  context: Pen,
  { left, top, width, height }: PixelBox,
  depth: number,
  isOutlined: boolean,
  tokens: Tokens,
): void {
  const x = Math.round(left);
  const y = Math.round(top);
  const right = Math.round(left + width);
  const bottom = Math.round(top + height);
  const radius = Math.min(depth === 1 ? 8 : 4, Math.min(width, height) * 0.12);
  context.beginPath();
  if (isOutlined) {
    context.roundRect(x + 0.5, y + 0.5, right - x - 1, bottom - y - 1, radius);
    context.strokeStyle = toCss(tokens.line);
    context.lineWidth = 1;
    context.stroke();
  } else {
    context.roundRect(x, y, right - x, bottom - y, radius);
    context.fillStyle = toCss(tokens.raised);
    context.fill();
  }
}

/** Hosts are things one can walk to: their frame is seen at any size. */
function paintFrame(context: Pen, { left, top, width, height }: PixelBox, tokens: Tokens): void {
  const x = Math.round(left);
  const y = Math.round(top);
  context.beginPath();
  context.roundRect(
    x + 0.5,
    y + 0.5,
    Math.round(left + width) - x - 1,
    Math.round(top + height) - y - 1,
    HOST_RADIUS_PX,
  );
  context.strokeStyle = toCss(tokens.line);
  context.lineWidth = 1;
  context.stroke();
}

/** Names stay visible while any part of their group is: they stick to the left edge. */
function paintLabel(
  context: Pen,
  layout: UnitLayout,
  group: number,
  box: PixelBox,
  { scale }: Projection,
  tokens: Tokens,
  taken: number,
): void {
  const { groups } = layout;
  const depth = groups.depth[group] ?? 0;
  const room = (groups.labelHeight[depth] ?? 0) * scale;
  const padding = (groups.padding[depth] ?? 0) * scale;
  const size = fontSize(depth, room * FONT_SHARE);
  if (size < SMALLEST_FONT_PX || isSameAsParent(layout, group)) return;
  if (room > box.width) {
    paintStandingLabel(context, labelOf(layout, group), box, room, tokens);
    return;
  }
  const indent = depth === 1 ? Math.max(padding, SMALLEST_INDENT_PX) : padding;
  const left = Math.max(box.left + indent, SMALLEST_INDENT_PX);
  const width = box.left + box.width - padding - left - taken;
  if (width < size * FEWEST_LETTERS) return;
  const baseline = Math.round(box.top + padding + room * 0.5 + size * 0.28);
  const isOuter = depth === 1;
  context.textBaseline = "alphabetic";
  context.font = `${isOuter ? 600 : 400} ${size}px ${FONT}`;
  const whole = labelOf(layout, group);
  const isHost = layout.layers[depth - 1]?.attribute === "node";
  // Rather a small name than half of one.
  if (isHost) {
    // By its letters, so that names of the same length are of the same size.
    const fitting = Math.max(SMALLEST_FONT_PX, Math.floor(width / (whole.length * WIDEST_LETTER)));
    context.font = `400 ${Math.min(size, fitting)}px ${FONT}`;
  } else {
    const needed = context.measureText(whole).width;
    const fitting = Math.floor((size * width * 2) / needed) / 2;
    if (needed > width && fitting >= SMALLEST_CUT_FONT_PX) {
      context.font = `${isOuter ? 600 : 400} ${fitting}px ${FONT}`;
    }
  }
  const name = cutText(whole, width, (text) => context.measureText(text).width);
  if (name === "") return;
  context.fillStyle = toCss(isOuter ? tokens.text : tokens.muted);
  context.fillText(name, Math.round(left), baseline);
  if (isHost) return; // hosts are alike, and their GPUs can be counted by eye
  const used = context.measureText(name).width + size * 0.5;
  const count = formatCount(groups.unitCount[group] ?? 0);
  context.font = `400 ${size * 0.9}px ${FONT}`;
  if (used + context.measureText(count).width > width) return;
  context.fillStyle = toCss(isOuter ? tokens.muted : tokens.faint);
  context.fillText(count, Math.round(left + used), baseline);
}

/** Names grow as one comes nearer, but less than what they name. */
function fontSize(depth: number, room: number): number {
  const usual = USUAL_FONT_PX[depth] ?? SMALLEST_FONT_PX;
  return room <= usual ? room : Math.min(LARGEST_FONT_PX, usual + (room - usual) * FONT_GROWTH);
}

/** From the bottom of its room up, in the middle of a bar. */
function paintStandingLabel(context: Pen, label: string, box: PixelBox, room: number, tokens: Tokens): void {
  const size = Math.min(STANDING_FONT_PX, box.width * 0.6);
  if (size < SMALLEST_FONT_PX) return;
  context.font = `400 ${size}px ${FONT}`;
  const name = cutText(label, room - 10, (text) => context.measureText(text).width);
  context.save();
  context.translate(box.left + box.width / 2 + size * 0.35, box.top + room - 2);
  context.rotate(-Math.PI / 2);
  context.fillStyle = toCss(tokens.muted);
  context.fillText(name, 0, 0);
  context.restore();
}

/** Units nobody holds have no project, no user and no workload: to say so once is enough. */
function isSameAsParent(layout: UnitLayout, group: number): boolean {
  const parent = layout.groups.parent[group] ?? 0;
  return parent !== 0 && labelOf(layout, parent) === labelOf(layout, group);
}

/** The text, or as much of its beginning as fits, with its number; nothing where that would not be worth reading. */
export function cutText(text: string, width: number, measure: (text: string) => number): string {
  if (measure(text) <= width) return text;
  const number = NUMBER_AT_END.exec(text)?.[0] ?? "";
  const letters = splitCharacters(text.slice(0, text.length - number.length));
  // What is written from right to left ends at its left: the dots belong to it, not to the line.
  const cut = (kept: number) => {
    const shown = `${letters.slice(0, kept).join("")}…${number}`;
    return RIGHT_TO_LEFT.test(shown) ? `\u2068${shown}\u2069` : shown;
  };
  let low = 0;
  let high = letters.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (measure(cut(middle)) <= width) low = middle;
    else high = middle - 1;
  }
  return low < FEWEST_LETTERS ? "" : cut(low);
}
