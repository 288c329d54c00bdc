import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BandMarks, SpanMarks } from "./marks.ts";
import { findRows, findSlots, indexSpans, orderBands } from "./visible.ts";

const ROWS = 12;
const row = fc.nat(ROWS - 1);
const range = fc.tuple(row, row).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);

function bandsOf(pairs: readonly (readonly [number, number])[]): BandMarks {
  return {
    count: pairs.length,
    fromRow: Uint16Array.from(pairs, ([from]) => from),
    toRow: Uint16Array.from(pairs, ([, to]) => to),
  } as BandMarks;
}

describe("visible slots", () => {
  it("hold every band that is on one of the rows or passes over them", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(row, row), { maxLength: 40 }), range, (pairs, [first, last]) => {
        const ordered = orderBands(bandsOf(pairs));
        expect([...ordered.order].sort((a, b) => a - b)).toEqual(pairs.map((_, band) => band));
        const [from, to] = findSlots(ordered, first, last);
        const visible = new Set(ordered.order.subarray(from, to));
        pairs.forEach(([a, b], band) => {
          if (Math.min(a, b) <= last && Math.max(a, b) >= first) expect(visible.has(band)).toBe(true);
        });
      }),
    );
  });

  it("hold the bands of neighboring rows only, where only neighbors are joined", () => {
    const ordered = orderBands(bandsOf(Array.from({ length: 100 }, (_, at) => [at % 10, (at % 10) + 1] as const)));
    expect(findSlots(ordered, 4, 5)).toEqual([30, 60]);
  });

  it("hold the spans of the rows and no others", () => {
    fc.assert(
      fc.property(fc.array(row, { maxLength: 40 }), range, (rows, [first, last]) => {
        const sorted = rows.toSorted((a, b) => a - b);
        const slots = indexSpans({ count: sorted.length, row: Uint16Array.from(sorted) } as SpanMarks);
        const [from, to] = findSlots(slots, first, last);
        expect(sorted.slice(from, to)).toEqual(sorted.filter((row) => row >= first && row <= last));
      }),
    );
  });

  it("are those of rows between the edges, the gap below a row being its own", () => {
    const places = { top: Float32Array.of(0, 20, 40, 60), height: Float32Array.of(8, 8, 8, 8) };
    expect(findRows(places, 0, 100)).toEqual([0, 3]);
    expect(findRows(places, 12, 45)).toEqual([0, 2]);
    expect(findRows(places, 20, 40)).toEqual([1, 1]);
    expect(findRows(places, 69, 90)).toEqual([0, -1]);
    expect(findRows({ top: new Float32Array(0), height: new Float32Array(0) }, 0, 10)).toEqual([0, -1]);
    expect(findSlots(indexSpans({ count: 0, row: new Uint16Array(0) } as SpanMarks), 0, 3)).toEqual([0, 0]);
  });
});
