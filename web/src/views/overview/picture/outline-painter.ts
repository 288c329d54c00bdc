// Paints the outlines of the selection on a 2D canvas in front of the squares.

import { type Projection, snapSide } from "../../../layers/squares/marks.ts";
import type { UnitLayout } from "../../../layout/layout.ts";
import type { Size } from "./camera.ts";
import { boxOf, isVisible, type PixelBox } from "./group-painter.ts";
import { type Tokens, toCss } from "./tokens.ts";

/** Groups and rows that are selected: where a whole group is, its rows are not. */
export interface Outlined {
  readonly groups: readonly number[];
  readonly rows: readonly number[];
}

export const NOTHING_OUTLINED: Outlined = { groups: [], rows: [] };

/** How many outlines were painted. */
export function paintOutlines(
  context: CanvasRenderingContext2D,
  layout: UnitLayout,
  outlined: Outlined,
  camera: Projection,
  viewport: Size,
  tokens: Tokens,
): number {
  let painted = 0;
  const trace = (box: PixelBox, gap: number, lineWidth: number) => {
    if (!isVisible(box, viewport)) return;
    traceOutline(context, box, gap + lineWidth / 2);
    painted += 1;
  };
  context.strokeStyle = toCss(tokens.accent);
  context.lineWidth = 2;
  context.beginPath();
  for (const group of outlined.groups) trace(boxOf(layout, group, camera), 0, 2);
  context.stroke();
  // Lines that are thicker than the gaps between squares would cover them.
  const lineWidth = Math.min(1.5, Math.max(1, camera.scale * 0.15));
  context.lineWidth = lineWidth;
  context.beginPath();
  for (const row of outlined.rows) trace(squareOf(layout, row, camera), camera.scale < 10 ? 0 : 1, lineWidth);
  context.stroke();
  return painted;
}

export function squareOf({ x, y, size }: UnitLayout, row: number, { scale, offsetX, offsetY }: Projection): PixelBox {
  const side = snapSide((size[row] ?? 0) * scale);
  return {
    left: Math.round((x[row] ?? 0) * scale + offsetX),
    top: Math.round((y[row] ?? 0) * scale + offsetY),
    width: side,
    height: side,
  };
}

function traceOutline(context: CanvasRenderingContext2D, box: PixelBox, out: number): void {
  const radius = Math.min(5, box.width * 0.16 + out);
  if (box.width < 8) context.rect(box.left - out, box.top - out, box.width + 2 * out, box.height + 2 * out);
  else context.roundRect(box.left - out, box.top - out, box.width + 2 * out, box.height + 2 * out, radius);
}

/** The fewest outlines around some rows: the largest groups that are selected whole, and the rows of no such group. */
export function findOutlined(layout: UnitLayout, rows: readonly number[]): Outlined {
  const { groups, group, size } = layout;
  const drawn = rows.filter((row) => (size[row] ?? 0) > 0);
  const counts = new Uint32Array(groups.count);
  for (const row of drawn) counts[group[row] ?? 0] = (counts[group[row] ?? 0] ?? 0) + 1;
  // Children come after their parents.
  for (let at = groups.count - 1; at > 0; at -= 1) {
    const parent = groups.parent[at] ?? 0;
    counts[parent] = (counts[parent] ?? 0) + (counts[at] ?? 0);
  }
  const isWhole = (at: number) => at > 0 && (counts[at] ?? 0) > 0 && counts[at] === groups.unitCount[at];
  const whole: number[] = [];
  for (let at = 1; at < groups.count; at += 1) {
    if (isWhole(at) && !isWhole(groups.parent[at] ?? 0)) whole.push(at);
  }
  return { groups: whole, rows: drawn.filter((row) => !isWhole(group[row] ?? 0)) };
}
