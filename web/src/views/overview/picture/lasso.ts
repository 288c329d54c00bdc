// Which units lie in a box or a lasso: those whose center does. Pure; lengths in units of the layout.

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
  const rows: number[] = [];
  for (const row of grid.listWithin(left, top, right, bottom)) {
    const half = (places.size[row] ?? 0) / 2;
    if (isInLoop((places.x[row] ?? 0) + half, (places.y[row] ?? 0) + half, loop)) rows.push(row);
  }
  return rows.sort((a, b) => a - b);
}

/** By the number of sides to the right of the point: odd inside, even outside, also where the loop crosses itself. */
export function isInLoop(x: number, y: number, loop: readonly Point[]): boolean {
  let isInside = false;
  let before = loop.at(-1);
  for (const at of loop) {
    if (before && isLeftOf(x, y, before, at)) isInside = !isInside;
    before = at;
  }
  return isInside;
}

/** Whether a line to the right meets the side; the same in either direction of the side, to the last digit. */
function isLeftOf(x: number, y: number, a: Point, b: Point): boolean {
  if (a[1] > y === b[1] > y) return false;
  const [low, high] = a[1] < b[1] ? [a, b] : [b, a];
  return x < low[0] + ((y - low[1]) * (high[0] - low[0])) / (high[1] - low[1]);
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
