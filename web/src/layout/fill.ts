// Fill: boxes side by side along X, all as high as the highest. Along Y with transposed boxes.

import type { Boxes, Extent } from "./boxes.ts";

/** Places boxes `from` … `to` and makes them equally high. */
export function arrangeFill(boxes: Boxes, from: number, to: number, gap: number): Extent {
  const { x, y, width, height } = boxes;
  let right = 0;
  let highest = 0;
  for (let box = from; box < to; box += 1) {
    x[box] = right;
    y[box] = 0;
    right += (width[box] ?? 0) + gap;
    highest = Math.max(highest, height[box] ?? 0);
  }
  height.fill(highest, from, to);
  return { width: Math.max(0, right - gap), height: highest };
}
