// List: boxes in order along X, wrapping at the width; boxes of a row have the same height. Along Y with transposed
// boxes.

import { type Boxes, chooseWidth, EPSILON, type Extent } from "./boxes.ts";

export interface ListOptions {
  readonly gap: number;
  /** The shape to come near to; its width decides nothing where `limit` does. */
  readonly target: Extent;
  /** Where to wrap; null: so that the list comes nearest to the target's shape. */
  readonly limit: number | null;
}

/** Places boxes `from` … `to`; a box wider than the limit has a row to itself. */
export function arrangeList(boxes: Boxes, from: number, to: number, { gap, target, limit }: ListOptions): Extent {
  const trial = (width: number) => wrap(boxes, from, to, gap, width, false);
  const width = limit ?? chooseWidth(target, findWidest(boxes, from, to), target.width, trial);
  return wrap(boxes, from, to, gap, width, true);
}

function findWidest({ width }: Boxes, from: number, to: number): number {
  let widest = 0;
  for (let box = from; box < to; box += 1) widest = Math.max(widest, width[box] ?? 0);
  return widest;
}

function wrap(boxes: Boxes, from: number, to: number, gap: number, limit: number, isFinal: boolean): Extent {
  const { x, y, width, height } = boxes;
  let right = 0;
  let top = 0;
  let rowStart = from;
  let rowHeight = 0;
  let widest = 0;
  for (let box = from; box < to; box += 1) {
    const boxWidth = width[box] ?? 0;
    if (box > rowStart && right + boxWidth > limit + EPSILON) {
      if (isFinal) height.fill(rowHeight, rowStart, box);
      top += rowHeight + gap;
      right = 0;
      rowHeight = 0;
      rowStart = box;
    }
    x[box] = right;
    y[box] = top;
    widest = Math.max(widest, right + boxWidth);
    right += boxWidth + gap;
    rowHeight = Math.max(rowHeight, height[box] ?? 0);
  }
  if (isFinal) height.fill(rowHeight, rowStart, to);
  return { width: widest, height: top + rowHeight };
}
