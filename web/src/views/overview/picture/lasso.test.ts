import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PickGrid } from "../../../layers/squares/pick-grid.ts";
import { boxCorners, isInLoop, listInLoop, type Point } from "./lasso.ts";

const COLUMNS = 12;
const count = COLUMNS * 9;
const places = {
  x: new Float32Array(count).map((_, row) => (row % COLUMNS) * 1.2),
  y: new Float32Array(count).map((_, row) => Math.floor(row / COLUMNS) * 1.2),
  size: new Float32Array(count).fill(1),
};
const grid = new PickGrid(places, { width: COLUMNS * 1.2, height: 9 * 1.2 });
const middle = (row: number): Point => [(places.x[row] ?? 0) + 0.5, (places.y[row] ?? 0) + 0.5];
const rows = Array.from({ length: count }, (_, row) => row);
const coordinate = fc.double({ min: -3, max: 20, noNaN: true });
const point = fc.tuple(coordinate, coordinate);

describe("a box", () => {
  it("holds the units whose middle is in it, from whichever corner it is drawn", () => {
    fc.assert(
      fc.property(point, point, (a, b) => {
        const [left, right] = [Math.min(a[0], b[0]), Math.max(a[0], b[0])];
        const [top, bottom] = [Math.min(a[1], b[1]), Math.max(a[1], b[1])];
        const inside = rows.filter((row) => {
          const [x, y] = middle(row);
          return x > left && x < right && y > top && y < bottom;
        });
        expect(listInLoop(places, grid, boxCorners(a, b))).toEqual(inside);
      }),
    );
  });
});

describe("a loop", () => {
  it("finds among all units those that it finds one by one", () => {
    fc.assert(
      fc.property(fc.array(point, { minLength: 3, maxLength: 30 }), (loop) => {
        expect(listInLoop(places, grid, loop)).toEqual(rows.filter((row) => isInLoop(...middle(row), loop)));
      }),
    );
  });

  it("does not depend on where it begins nor on its direction", () => {
    fc.assert(
      fc.property(fc.array(point, { minLength: 3, maxLength: 12 }), point, fc.nat(11), (loop, [x, y], shift) => {
        const turned = [...loop.slice(shift % loop.length), ...loop.slice(0, shift % loop.length)];
        expect(isInLoop(x, y, turned)).toBe(isInLoop(x, y, loop));
        expect(isInLoop(x, y, loop.toReversed())).toBe(isInLoop(x, y, loop));
      }),
    );
  });

  it("leaves out what it goes around", () => {
    const horseshoe: readonly Point[] = [
      [0, 0],
      [6, 0],
      [6, 6],
      [4, 6],
      [4, 2],
      [2, 2],
      [2, 6],
      [0, 6],
    ];
    expect(isInLoop(3, 4, horseshoe)).toBe(false);
    expect(isInLoop(1, 4, horseshoe)).toBe(true);
    expect(isInLoop(5, 4, horseshoe)).toBe(true);
  });

  it("of no size holds nothing", () => {
    expect(listInLoop(places, grid, [])).toEqual([]);
    expect(listInLoop(places, grid, [middle(3), middle(3), middle(3)])).toEqual([]);
  });
});
