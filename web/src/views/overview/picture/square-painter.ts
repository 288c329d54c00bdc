// The squares with a pen, for files: on the page the graphics card draws them. Squares that look alike are one path.

import type { Pen } from "../../../charts/pen.ts";
import { isSolid, type Marks, type Projection, SHAPES } from "../../../layers/squares/marks.ts";
import type { UnitLayout } from "../../../layout/layout.ts";
import type { Size } from "./camera.ts";
import { isVisible } from "./group-painter.ts";
import { squareOf } from "./outline-painter.ts";
import { toCss } from "./tokens.ts";

/** Below this side there is no inside to tell from a border. */
const SMALLEST_OUTLINED_PX = 5;
/** How much of a hatched square is covered, drawn as an even tone. */
const HATCHED = 0.4;
/** How far from the corners of what is out of service its cross begins, as a share of the side. */
const CROSS_INSET = 0.26;

/** `ground`: the color below the squares. */
export function paintSquares(
  pen: Pen,
  layout: UnitLayout,
  marks: Marks,
  camera: Projection,
  viewport: Size,
  ground: string,
): void {
  const alike = new Map<string, number[]>();
  for (let row = 0; row < layout.size.length; row += 1) {
    if ((layout.size[row] ?? 0) <= 0 || (marks.opacity[row] ?? 0) <= 0) continue;
    if (!isVisible(squareOf(layout, row, camera), viewport)) continue;
    const key = `${marks.color[row]} ${marks.shape[row]} ${marks.opacity[row]}`;
    const rows = alike.get(key);
    if (rows) rows.push(row);
    else alike.set(key, [row]);
  }
  for (const rows of alike.values()) paintAlike(pen, layout, marks, camera, rows, ground);
  pen.globalAlpha = 1;
}

function paintAlike(
  pen: Pen,
  layout: UnitLayout,
  marks: Marks,
  camera: Projection,
  rows: readonly number[],
  ground: string,
): void {
  const [first = 0] = rows;
  const shape = marks.shape[first] ?? SHAPES.filled;
  const opacity = marks.opacity[first] ?? 1;
  const color = toCss(marks.color[first] ?? 0);
  const isOpen = shape === SHAPES.free || shape === SHAPES.requested;
  const side = squareOf(layout, first, camera).width;
  const inset = isOpen && side >= SMALLEST_OUTLINED_PX ? 0.5 : 0;
  pen.beginPath();
  for (const row of rows) {
    const { left, top } = squareOf(layout, row, camera);
    const length = side - 2 * inset;
    if (side < 8) pen.rect(left + inset, top + inset, length, length);
    else pen.roundRect(left + inset, top + inset, length, length, Math.min(side * 0.16, 4));
  }
  pen.fillStyle = color;
  pen.strokeStyle = color;
  pen.lineWidth = 1;
  if (inset > 0) {
    pen.globalAlpha = opacity;
    pen.stroke();
    return;
  }
  pen.globalAlpha = opacity * (isSolid(shape) ? 1 : HATCHED);
  pen.fill();
  if (shape === SHAPES.out && side >= SMALLEST_OUTLINED_PX) crossOut(pen, layout, camera, rows, ground);
}

function crossOut(pen: Pen, layout: UnitLayout, camera: Projection, rows: readonly number[], ground: string): void {
  pen.beginPath();
  for (const row of rows) {
    const { left, top, width } = squareOf(layout, row, camera);
    const near = width * CROSS_INSET;
    const far = width - near;
    pen.moveTo(left + near, top + near);
    pen.lineTo(left + far, top + far);
    pen.moveTo(left + far, top + near);
    pen.lineTo(left + near, top + far);
    pen.lineWidth = Math.max(1.4, width * 0.12);
  }
  pen.strokeStyle = ground;
  pen.globalAlpha = 1;
  pen.stroke();
}
