// Rectangles in flat arrays, and the choice of a width for row-by-row arrangements. Shared by the arrangements.

/** Arrangements write `x` and `y` relative to the content of the parent. Lengths are in sides of a unit. */
export interface Boxes {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly width: Float64Array;
  readonly height: Float64Array;
}

export interface Extent {
  readonly width: number;
  readonly height: number;
}

/** Lengths nearer than this are equal: sums in another order differ in the last digits. */
export const EPSILON = 1e-6;

export function makeBoxes(count: number): Boxes {
  return {
    x: new Float64Array(count),
    y: new Float64Array(count),
    width: new Float64Array(count),
    height: new Float64Array(count),
  };
}

/** The same arrays with X and Y exchanged: what goes along X then goes along Y. */
export function transposeBoxes({ x, y, width, height }: Boxes): Boxes {
  return { x: y, y: x, width: height, height: width };
}

export function transposeExtent({ width, height }: Extent): Extent {
  return { width: height, height: width };
}

const MAX_TRIES = 7;
const GOOD_ENOUGH = 1.02;
/** How much wider to try where nothing is known to be too wide yet. */
const STEP = 1.4;

/**
 * The width for which an arrangement comes nearest to the shape of `target`, by a few trials between a width that gives
 * too high a result and one that gives too wide a result. `arrange` is never asked for less than `minWidth`.
 */
export function chooseWidth(
  target: Extent,
  minWidth: number,
  firstWidth: number,
  arrange: (width: number) => Extent,
): number {
  let width = Math.max(minWidth, firstWidth);
  let best = width;
  let smallest = Number.POSITIVE_INFINITY;
  let tooNarrow = minWidth;
  let tooWide = Number.POSITIVE_INFINITY;
  for (let trial = 0; trial < MAX_TRIES; trial += 1) {
    const result = arrange(width);
    const excessX = result.width / target.width;
    const excessY = result.height / target.height;
    const excess = Math.max(excessX, excessY);
    if (excess < smallest - EPSILON) {
      smallest = excess;
      best = width;
    }
    const imbalance = excessY / excessX;
    if (imbalance < GOOD_ENOUGH && imbalance > 1 / GOOD_ENOUGH) break;
    if (imbalance > 1) tooNarrow = Math.max(tooNarrow, width);
    else tooWide = Math.min(tooWide, result.width);
    if (tooWide < tooNarrow * GOOD_ENOUGH) break;
    width = result.width * Math.sqrt(imbalance);
    if (width <= tooNarrow || width >= tooWide) {
      width = Number.isFinite(tooWide) ? (tooNarrow + tooWide) / 2 : tooNarrow * STEP;
    }
  }
  return best;
}
