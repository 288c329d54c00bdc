// Which units lie in a box or a drawn loop: those whose middle does. Pure; lengths in the units of the layout.

import type { Places } from "../../../layers/squares/marks.ts";
import type { PickGrid } from "../../../layers/squares/pick-grid.ts";

export type Point = readonly [x: number, y: number];

/** The corners of the box between two points. */
export function boxCorners([ax, ay]: Point, [bx, by]: Point): readonly Point[] {
  return [
    [ax, ay],
    [bx, ay],
    [bx, by],
    [ax, by],
  ];
}

/** In the order of rows. */
export function listInLoop(places: Places, grid: PickGrid, loop: readonly Point[]): readonly number[] {
  const [left, top, right, bottom] = boundsOf(loop);
  if (!(left < right || top < bottom)) return [];
  const found: number[] = [];
  for (const row of grid.listWithin(left, top, right, bottom)) {
    const half = (places.size[row] ?? 0) / 2;
    if (isInLoop((places.x[row] ?? 0) + half, (places.y[row] ?? 0) + half, loop)) found.push(row);
  }
  return found.sort((a, b) => a - b);
}

/** By the number of sides to the right of the point: odd inside, even outside, also where the loop crosses itself. */
export function isInLoop(x: number, y: number, loop: readonly Point[]): boolean {
  let isInside = false;
  let [beforeX, beforeY] = loop.at(-1) ?? [0, 0];
  for (const [atX, atY] of loop) {
    const isBeside = atY > y !== beforeY > y;
    if (isBeside && x < ((beforeX - atX) * (y - atY)) / (beforeY - atY) + atX) isInside = !isInside;
    beforeX = atX;
    beforeY = atY;
  }
  return isInside;
}

function boundsOf(loop: readonly Point[]): readonly [left: number, top: number, right: number, bottom: number] {
  const infinite = Number.POSITIVE_INFINITY;
  let [left, top, right, bottom] = [infinite, infinite, -infinite, -infinite];
  for (const [x, y] of loop) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  return [left, top, right, bottom];
}
