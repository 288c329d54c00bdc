import { describe, expect, it } from "vitest";
import { foldLines } from "./fold.ts";

const CRITICAL = 0;
const WARNING = 1;
const INFO = 2;

/** One line unless said otherwise. */
function fold(sizes: readonly number[], ranks: readonly number[], width: number, lines = 1): readonly number[] {
  return foldLines(sizes, ranks, { width, lines, gap: 2, more: 20 });
}

describe("a row that is too long", () => {
  it("shows all where they fit, without room for a sign", () => {
    expect(fold([10, 10, 10], [INFO, INFO, INFO], 34)).toEqual([0, 1, 2]);
  });

  it("keeps the most severe, in their own order", () => {
    expect(fold([10, 10, 10, 10], [INFO, WARNING, INFO, CRITICAL], 44)).toEqual([1, 3]);
  });

  it("of equally severe ones keeps the first", () => {
    expect(fold([10, 10, 10], [WARNING, WARNING, WARNING], 32)).toEqual([0]);
  });

  it("does not pass over a severe one for a lesser one that would fit", () => {
    expect(fold([50, 5, 50], [CRITICAL, INFO, WARNING], 40)).toEqual([]);
  });

  it("fills a second line before it folds", () => {
    expect(fold([10, 10, 10, 10], [INFO, INFO, INFO, INFO], 22, 2)).toEqual([0, 1, 2, 3]);
    expect(fold([10, 10, 10, 10, 10], [INFO, INFO, INFO, INFO, CRITICAL], 42, 2)).toEqual([0, 1, 2, 3, 4]);
    expect(fold([10, 10, 10, 10, 10], [INFO, INFO, INFO, INFO, CRITICAL], 32, 2)).toEqual([0, 4]);
  });

  it("breaks lines as they stand, not as they would fill best", () => {
    expect(fold([10, 30, 10, 10], [INFO, INFO, INFO, CRITICAL], 52, 2)).toEqual([0, 1, 2, 3]);
    expect(fold([20, 40, 20, 30], [INFO, INFO, INFO, CRITICAL], 55, 2)).toEqual([0, 3]);
  });

  it("shows nothing of nothing", () => {
    expect(fold([], [], 0)).toEqual([]);
  });
});
