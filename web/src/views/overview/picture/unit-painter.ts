// Paints name and value inside squares that are large enough.

import { isSolid, type Marks, type PackedColor, type Projection } from "../../../layers/squares/marks.ts";
import type { UnitLayout } from "../../../layout/layout.ts";
import type { Size } from "./camera.ts";
import { cutText, FONT, isVisible } from "./group-painter.ts";
import { squareOf } from "./outline-painter.ts";
import { type Tokens, toCss } from "./tokens.ts";

/** What is written into a square: two short lines. */
export type CaptionOf = (row: number) => readonly [name: string, value: string];

const SMALLEST_SIDE_PX = 64;
const NAME_FONT_PX = 11;
const VALUE_FONT_PX = 13;
const INDENT_PX = 7;
/** Colors lighter than this carry dark text. */
const LIGHT = 0.55;

/** `rows`: those that may be visible. Returns the number of painted captions. */
export function paintCaptions(
  context: CanvasRenderingContext2D,
  layout: UnitLayout,
  marks: Marks,
  captionOf: CaptionOf,
  camera: Projection,
  viewport: Size,
  tokens: Tokens,
  rows: Iterable<number>,
): number {
  if (camera.scale < SMALLEST_SIDE_PX) return 0;
  context.textBaseline = "alphabetic";
  const measure = (text: string) => context.measureText(text).width;
  let painted = 0;
  for (const row of rows) {
    const box = squareOf(layout, row, camera);
    if ((layout.size[row] ?? 0) <= 0 || !isVisible(box, viewport)) continue;
    const [name, value] = captionOf(row);
    const room = box.width - 2 * INDENT_PX;
    context.fillStyle = isSolid(marks.shape[row]) ? textOn(marks.color[row] ?? 0) : toCss(tokens.muted);
    context.font = `400 ${NAME_FONT_PX}px ${FONT}`;
    context.fillText(cutText(name, room, measure), box.left + INDENT_PX, box.top + INDENT_PX + NAME_FONT_PX);
    context.font = `600 ${VALUE_FONT_PX}px ${FONT}`;
    context.fillText(cutText(value, room, measure), box.left + INDENT_PX, box.top + box.height - INDENT_PX - 2);
    painted += 1;
  }
  return painted;
}

/** Black or white, whichever can be read on the color. */
export function textOn(color: PackedColor): string {
  const lightness = (0.299 * (color >> 16) + 0.587 * ((color >> 8) & 255) + 0.114 * (color & 255)) / 255;
  return lightness > LIGHT ? "rgb(0 0 0 / 0.78)" : "rgb(255 255 255 / 0.92)";
}
