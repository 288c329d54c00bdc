import { describe, expect, it } from "vitest";
import { foldRow } from "./fold.ts";

const CRITICAL = 0;
const WARNING = 1;
const INFO = 2;

describe("a row that is too long", () => {
  it("shows all where they fit, without room for a sign", () => {
    expect(foldRow([10, 10, 10], [INFO, INFO, INFO], 34, 2, 20)).toEqual([0, 1, 2]);
  });

  it("keeps the most severe, in their own order", () => {
    expect(foldRow([10, 10, 10, 10], [INFO, WARNING, INFO, CRITICAL], 44, 2, 20)).toEqual([1, 3]);
  });

  it("of equally severe ones keeps the first", () => {
    expect(foldRow([10, 10, 10], [WARNING, WARNING, WARNING], 32, 2, 20)).toEqual([0]);
  });

  it("does not pass over a severe one for a lesser one that would fit", () => {
    expect(foldRow([50, 5, 50], [CRITICAL, INFO, WARNING], 40, 2, 20)).toEqual([]);
  });

  it("shows nothing of nothing", () => {
    expect(foldRow([], [], 0, 2, 20)).toEqual([]);
  });
});
