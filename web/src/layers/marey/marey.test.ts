import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type BandMarks, SPAN_STYLES, type SpanMarks, TIER_PLACES, TIERS } from "./marks.ts";
import { SpanIndex } from "./pick.ts";
import {
  MOST_ROWS,
  packBandMarks,
  packRows,
  packSpanMarks,
  packSpanPlaces,
  TEXTURE_WIDTH,
  TIER_STEP,
} from "./texels.ts";

const spans: SpanMarks = {
  count: 2,
  startNs: Float32Array.of(1, 5),
  endNs: Float32Array.of(4, 9),
  row: Uint16Array.of(0, 3),
  softNs: Float32Array.of(0, 2),
  color: Uint32Array.of(0x4fd1a5, 0xffffff),
  style: Uint8Array.of(SPAN_STYLES.block, SPAN_STYLES.merged),
  tier: Uint8Array.of(TIERS.upper, TIERS.lower),
  opacity: Float32Array.of(1, 0.5),
  instance: Float32Array.of(7, 7),
};

describe("texels of a Marey graph", () => {
  it("hold a span's place, color, shape and instance exactly", () => {
    expect([...packSpanPlaces(spans).subarray(0, 8)]).toEqual([1, 4, 0, 0, 5, 9, 3, 2]);
    expect([...packSpanMarks(spans).subarray(0, 8)]).toEqual([
      0x4fd1a5,
      TIER_STEP * TIERS.upper,
      1,
      7,
      0xffffff,
      TIER_STEP * TIERS.lower + SPAN_STYLES.merged,
      0.5,
      7,
    ]);
    expect(packRows({ top: Float32Array.of(3), height: Float32Array.of(8) }).length).toBe(TEXTURE_WIDTH * 4);
  });

  it("hold both rows of a band in one float", () => {
    const row = fc.nat(MOST_ROWS - 1);
    fc.assert(
      fc.property(row, row, (from, to) => {
        const empty = new Float32Array(1);
        const bands: BandMarks = {
          count: 1,
          fromStartNs: empty,
          fromEndNs: empty,
          toStartNs: empty,
          toEndNs: empty,
          fromRow: Uint16Array.of(from),
          toRow: Uint16Array.of(to),
          color: new Uint32Array(1),
          opacity: empty,
          instance: empty,
        };
        const both = packBandMarks(bands, Uint32Array.of(0))[1] ?? 0;
        expect([Math.floor(both / MOST_ROWS), both % MOST_ROWS]).toEqual([from, to]);
      }),
    );
  });

  it("have tiers within the lane that do not overlap", () => {
    for (const [from, to] of TIER_PLACES) expect(0 <= from && from < to && to <= 1).toBe(true);
    const place = (tier: number) => TIER_PLACES[tier] ?? [0, 0];
    expect(place(TIERS.upper)[1]).toBeLessThan(place(TIERS.lower)[0]);
    expect(place(TIERS.top)[1]).toBeLessThan(place(TIERS.middle)[0]);
    expect(place(TIERS.middle)[1]).toBeLessThan(place(TIERS.lower)[0]);
  });
});

describe("picking a span", () => {
  const lane = { count: 4, row: [0, 0, 0, 1], startNs: [0, 10, 40, 12], endNs: [30, 20, 50, 18] };
  const index = new SpanIndex(lane, 2);

  it("takes the shortest that holds the time, and the nearest where none does", () => {
    expect(index.find(0, 5, 0)).toBe(0);
    expect(index.find(0, 15, 0)).toBe(1);
    expect(index.find(0, 38, 3)).toBe(2);
    expect(index.find(0, 35, 1)).toBeNull();
    expect(index.find(5, 1, 1)).toBeNull();
  });

  it("finds every span by any time in it, however they lie", () => {
    const drawn = fc.array(fc.tuple(fc.nat(3), fc.nat(1000), fc.integer({ min: 1, max: 300 })), { minLength: 1 });
    fc.assert(
      fc.property(drawn, fc.nat(), fc.double({ min: 0, max: 1, noNaN: true }), (list, which, share) => {
        const spanColumns = {
          count: list.length,
          row: list.map(([row]) => row),
          startNs: list.map(([, start]) => start),
          endNs: list.map(([, start, length]) => start + length),
        };
        const span = which % list.length;
        const [row = 0, start = 0, length = 0] = list[span] ?? [];
        const picked = new SpanIndex(spanColumns, 4).find(row, start + share * length, 0);
        expect(picked).not.toBeNull();
        expect((spanColumns.endNs[picked ?? 0] ?? 0) - (spanColumns.startNs[picked ?? 0] ?? 0)).toBeLessThanOrEqual(
          length,
        );
      }),
    );
  });

  it("walks along a row and across rows", () => {
    expect(index.findFirst(-1)).toBe(0);
    expect(index.findNeighbor(1, 1)).toBe(2);
    expect(index.findNeighbor(0, -1)).toBeNull();
    expect(index.findBeside(1, 1)).toBe(3);
    expect(index.findBeside(3, -1)).toBe(1);
    expect(index.findBeside(3, 1)).toBeNull();
  });
});
