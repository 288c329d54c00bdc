import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { snapSide } from "./marks.ts";
import { PickGrid } from "./pick-grid.ts";
import { carryPlaces, countTextureRows, mixTexels, packMarks, packPlaces, TEXTURE_WIDTH } from "./texels.ts";

function placeGrid(columns: number, rows: number, pitch: number) {
  const count = columns * rows;
  const x = new Float32Array(count).map((_, slot) => (slot % columns) * pitch);
  const y = new Float32Array(count).map((_, slot) => Math.floor(slot / columns) * pitch);
  return { x, y, size: new Float32Array(count).fill(1) };
}

/** The last name has the first code, so that codes and slots differ. */
function slotNames(...names: string[]) {
  return { codes: Uint32Array.from(names, (_, slot) => names.length - slot), names: [null, ...names.toReversed()] };
}

describe("picking", () => {
  it("finds every square by any point in it, and none between them", () => {
    const columns = 7;
    const places = placeGrid(columns, 5, 1.5);
    const grid = new PickGrid(places, { width: 10, height: 7 });
    const inside = fc.double({ min: 0.01, max: 0.99, noNaN: true });
    fc.assert(
      fc.property(fc.nat(34), inside, inside, (slot, dx, dy) => {
        const x = (slot % columns) * 1.5;
        const y = Math.floor(slot / columns) * 1.5;
        expect(grid.find(x + dx, y + dy)).toBe(slot);
        expect(grid.find(x + 1.25, y + dy)).toBeNull();
      }),
    );
    expect(grid.find(-1, -1)).toBeNull();
    expect(grid.find(500, 500)).toBeNull();
  });

  it("passes over squares that are not drawn", () => {
    const places = placeGrid(2, 1, 1.2);
    places.size[0] = 0;
    expect(new PickGrid(places, { width: 3, height: 1 }).find(0.5, 0.5)).toBeNull();
  });

  it("walks from square to square and stops at the edge", () => {
    const grid = new PickGrid(placeGrid(3, 3, 1.2), { width: 3.6, height: 3.6 });
    expect(grid.findNext(4, "left")).toBe(3);
    expect(grid.findNext(4, "right")).toBe(5);
    expect(grid.findNext(4, "up")).toBe(1);
    expect(grid.findNext(4, "down")).toBe(7);
    expect(grid.findNext(2, "right")).toBeNull();
  });

  it("takes no units at all", () => {
    expect(new PickGrid(placeGrid(0, 0, 1), { width: 0, height: 0 }).find(0, 0)).toBeNull();
  });
});

describe("the side of a square", () => {
  it("leaves a gap to the next one, however small both are", () => {
    fc.assert(
      fc.property(fc.double({ min: 1, max: 8, noNaN: true }), (side) => {
        expect(snapSide(side)).toBeLessThanOrEqual(side);
        expect(snapSide(side)).toBeGreaterThanOrEqual(1);
      }),
    );
    expect(snapSide(0.2)).toBe(1);
    expect(snapSide(12.6)).toBe(13);
  });
});

describe("texels", () => {
  it("fill whole rows", () => {
    expect([0, 1, TEXTURE_WIDTH, TEXTURE_WIDTH + 1].map(countTextureRows)).toEqual([1, 1, 1, 2]);
    expect(packPlaces(placeGrid(3, 1, 1)).length).toBe(TEXTURE_WIDTH * 4);
  });

  it("hold every color exactly", () => {
    fc.assert(
      fc.property(fc.nat(0xffffff), (color) => {
        const marks = { color: Uint32Array.of(color), shape: Uint8Array.of(3), opacity: Float32Array.of(0.5) };
        expect([...packMarks(marks).subarray(0, 3)]).toEqual([color, 3, 0.5]);
      }),
    );
  });

  it("let a unit fly from where it was, whatever its slot is now, and a new one grow", () => {
    const before = packPlaces(placeGrid(2, 1, 10));
    const next = packPlaces({ x: Float32Array.of(5, 6), y: Float32Array.of(7, 8), size: Float32Array.of(1, 1) });
    const carried = carryPlaces(before, slotNames("a", "b"), slotNames("b", "c"), next);
    expect([...carried.subarray(0, 3)]).toEqual([10, 0, 1]);
    expect([...carried.subarray(4, 7)]).toEqual([6, 8, 0]);
    expect([...mixTexels(carried, next, 0.5).subarray(0, 3)]).toEqual([7.5, 3.5, 1]);
    expect([...mixTexels(carried, next, 1).subarray(0, 8)]).toEqual([...next.subarray(0, 8)]);
  });

  it("let every unit fly from its own slot when only the arrangement changes", () => {
    const before = packPlaces(placeGrid(2, 1, 10));
    const next = packPlaces({ x: Float32Array.of(5, 6), y: Float32Array.of(7, 8), size: Float32Array.of(1, 1) });
    const carried = carryPlaces(before, slotNames("a", "b"), slotNames("a", "b"), next);
    expect([...carried]).toEqual([...before]);
    expect(carried).not.toBe(before);
  });
});

describe("visible squares", () => {
  it("holds every square that touches the window, and few others", () => {
    const places = placeGrid(40, 30, 1.2);
    const grid = new PickGrid(places, { width: 48, height: 36 });
    const edge = fc.double({ min: -10, max: 60, noNaN: true });
    fc.assert(
      fc.property(edge, edge, edge, edge, (a, b, c, d) => {
        const [left, right] = [Math.min(a, b), Math.max(a, b)];
        const [top, bottom] = [Math.min(c, d), Math.max(c, d)];
        const listed = new Set(grid.listWithin(left, top, right, bottom));
        places.x.forEach((x, slot) => {
          const y = places.y[slot] ?? 0;
          if (x + 1 > left && x < right && y + 1 > top && y < bottom) expect(listed.has(slot)).toBe(true);
          if (x > right + 4 || y > bottom + 4) expect(listed.has(slot) && right > 0 && bottom > 0).toBe(false);
        });
      }),
    );
    expect(grid.count).toBe(1200);
  });
});
