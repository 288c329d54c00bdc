// What is pointed at, focused or selected, outlined on a 2D canvas before the squares.

import { type Projection, snapSide } from "../../../layers/squares/marks.ts";
import type { UnitLayout } from "../../../layout/layout.ts";
import type { Size } from "./camera.ts";
import { boxOf, isInSight, type PixelBox } from "./group-painter.ts";
import { type Tokens, toCss } from "./tokens.ts";

export interface Outlined {
  /** Groups and rows that are selected: where a whole group is, its rows are not. */
  readonly groups: readonly number[];
  readonly rows: readonly number[];
  readonly hovered: number | null;
  readonly focused: number | null;
}

export const NOTHING_OUTLINED: Outlined = { groups: [], rows: [], hovered: null, focused: null };

export function paintOutlines(
  context: CanvasRenderingContext2D,
  layout: UnitLayout,
  outlined: Outlined,
  camera: Projection,
  viewport: Size,
  tokens: Tokens,
): void {
  const paint = (box: PixelBox, gap: number, width: number) => {
    if (isInSight(box, viewport)) paintOutline(context, box, gap, width);
  };
  context.strokeStyle = toCss(tokens.accent);
  for (const group of outlined.groups) paint(boxOf(layout, group, camera), 0, 2);
  for (const row of outlined.rows) paint(squareOf(layout, row, camera), 1, 1.5);
  context.strokeStyle = toCss(tokens.text);
  if (outlined.hovered !== null) paint(squareOf(layout, outlined.hovered, camera), 1, 1.5);
  if (outlined.focused !== null) paint(squareOf(layout, outlined.focused, camera), 2, 2);
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

function paintOutline(context: CanvasRenderingContext2D, box: PixelBox, gap: number, lineWidth: number): void {
  const out = gap + lineWidth / 2;
  context.beginPath();
  context.lineWidth = lineWidth;
  const radius = Math.min(5, box.width * 0.16 + out);
  context.roundRect(box.left - out, box.top - out, box.width + 2 * out, box.height + 2 * out, radius);
  context.stroke();
}

/** The groups that hold all of a workload and nothing else; where there are none, its rows. */
export function findSelected(
  layout: UnitLayout,
  workload: string,
  rows: readonly number[],
): Pick<Outlined, "groups" | "rows"> {
  const depth = layout.layers.findIndex(({ attribute }) => attribute === "workload") + 1;
  const drawn = rows.filter((row) => (layout.size[row] ?? 0) > 0);
  if (depth === 0) return { groups: [], rows: drawn };
  const { groups, layers } = layout;
  const code = layers[depth - 1]?.keys.findIndex((key) => key.kind === "name" && key.name === workload) ?? -1;
  const found: number[] = [];
  for (let group = 1; group < groups.count; group += 1) {
    if (groups.depth[group] === depth && groups.key[group] === code) found.push(group);
  }
  return { groups: found, rows: found.length > 0 ? [] : drawn };
}
