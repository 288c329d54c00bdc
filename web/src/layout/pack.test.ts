import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Boxes, type Extent, makeBoxes } from "./boxes.ts";
import { DEFAULT_MARK } from "./grammar.ts";
import { createPacker } from "./pack.ts";
import { createRandom } from "./synthetic-units.ts";
import { chooseGrid } from "./unit-grid.ts";

const SQUARE: Extent = { width: 1, height: 1 };

function boxesOf(sizes: readonly (readonly [number, number])[]): Boxes {
  const boxes = makeBoxes(sizes.length);
  sizes.forEach(([width, height], index) => {
    boxes.width[index] = width;
    boxes.height[index] = height;
  });
  return boxes;
}

function placesOf({ x, y }: Boxes): readonly (readonly [number, number])[] {
  return Array.from(x, (left, index) => [left, y[index] ?? Number.NaN]);
}

describe("pack", () => {
  it("fills three by three with one of two by two and five of one by one", () => {
    const square = [1, 1] as const;
    const boxes = boxesOf([square, [2, 2], square, square, square, square]);
    expect(createPacker(6).arrange(boxes, 0, 6, 0, SQUARE)).toEqual({ width: 3, height: 3 });
    expect(placesOf(boxes)).toEqual([
      [2, 0],
      [0, 0],
      [2, 1],
      [0, 2],
      [1, 2],
      [2, 2],
    ]);
  });

  it("keeps equal boxes in order, row by row", () => {
    const boxes = boxesOf(Array.from({ length: 5 }, () => [2, 1] as const));
    expect(createPacker(5).arrange(boxes, 0, 5, 0.5, { width: 3, height: 1 })).toEqual({ width: 7, height: 2.5 });
    expect(placesOf(boxes)).toEqual([
      [0, 0],
      [2.5, 0],
      [5, 0],
      [0, 1.5],
      [2.5, 1.5],
    ]);
  });

  it("never lets boxes touch nearer than the gap, nor leaves the extent", () => {
    const side = fc.double({ min: 0.5, max: 30, noNaN: true });
    const sizes = fc.array(fc.tuple(side, side), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(sizes, fc.double({ min: 0, max: 3, noNaN: true }), side, (list, gap, width) => {
        const boxes = boxesOf(list);
        const extent = createPacker(list.length).arrange(boxes, 0, list.length, gap, { width, height: 3 });
        for (let a = 0; a < list.length; a += 1) {
          const right = (boxes.x[a] ?? 0) + (boxes.width[a] ?? 0);
          const bottom = (boxes.y[a] ?? 0) + (boxes.height[a] ?? 0);
          expect(right).toBeLessThanOrEqual(extent.width + 1e-5);
          expect(bottom).toBeLessThanOrEqual(extent.height + 1e-5);
          for (let b = 0; b < list.length; b += 1) {
            const isApart =
              (boxes.x[b] ?? 0) >= right + gap - 1e-5 ||
              (boxes.y[b] ?? 0) >= bottom + gap - 1e-5 ||
              (boxes.x[a] ?? 0) >= (boxes.x[b] ?? 0) + (boxes.width[b] ?? 0) + gap - 1e-5 ||
              (boxes.y[a] ?? 0) >= (boxes.y[b] ?? 0) + (boxes.height[b] ?? 0) + gap - 1e-5;
            expect(a === b || isApart).toBe(true);
          }
        }
      }),
    );
  });

  it("wastes little on workloads as clusters have them, near the shape asked for", () => {
    const waste = (count: number) => {
      const random = createRandom(count);
      const sizes = Array.from({ length: count }, () => {
        const units = [1, 1, 1, 2, 2, 4, 8, 8, 16, 32, 64][Math.floor(random() * 11)] ?? 1;
        const { columns, rows } = chooseGrid(DEFAULT_MARK, units, SQUARE);
        return [columns + 1, rows + 1] as const;
      });
      const extent = createPacker(count).arrange(boxesOf(sizes), 0, count, 0, { width: 4, height: 3 });
      expect(Math.abs(Math.log(extent.width / extent.height / (4 / 3)))).toBeLessThan(0.2);
      return 1 - sizes.reduce((area, [width, height]) => area + width * height, 0) / (extent.width * extent.height);
    };
    expect(waste(50)).toBeLessThan(0.12);
    expect(waste(200)).toBeLessThan(0.06);
    expect(waste(1000)).toBeLessThan(0.03);
  });
});

describe("a grid of units", () => {
  const grid = (count: number, aspect = 1) => {
    const { columns, rows } = chooseGrid(DEFAULT_MARK, count, { width: aspect, height: 1 });
    return `${columns}×${rows}`;
  };

  it("has the shape asked for, but rather no holes", () => {
    expect([1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 64, 100].map((count) => grid(count))).toEqual([
      ..."1×1 2×1 2×2 2×2 3×2 3×2 4×2 4×2 4×3 4×4 8×8 10×10".split(" "),
    ]);
    expect(grid(8, 0.1)).toBe("1×8");
    expect(grid(8, 20)).toBe("8×1");
  });

  it("goes down first along X, right first along Y, at the width or height there is", () => {
    const at = (layout: "fillX" | "fillY" | "listX" | "listY", limit: number | null = null) =>
      chooseGrid({ ...DEFAULT_MARK, padding: 0, layout, limit }, 10, { width: 3, height: 4 });
    expect(at("fillX")).toEqual({ columns: 3, rows: 4 });
    expect(at("listY")).toEqual({ columns: 3, rows: 4 });
    expect(at("fillY")).toEqual({ columns: 3, rows: 4 });
    expect(at("listX")).toEqual({ columns: 3, rows: 4 });
    expect(at("fillX", 5)).toEqual({ columns: 2, rows: 5 });
    expect(at("fillY", 5)).toEqual({ columns: 5, rows: 2 });
    expect(at("fillY", 99)).toEqual({ columns: 10, rows: 1 });
  });
});
