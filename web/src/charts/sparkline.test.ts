import { describe, expect, it } from "vitest";
import { splitRuns } from "./sparkline.tsx";

describe("splitRuns", () => {
  it("keeps gaps in time as gaps", () => {
    expect(splitRuns(Float64Array.of(0, 10, 20, 30, 90, 100))).toEqual([
      [0, 4],
      [4, 6],
    ]);
  });

  it("takes nothing and a single sample", () => {
    expect(splitRuns(new Float64Array(0))).toEqual([]);
    expect(splitRuns(Float64Array.of(5))).toEqual([[0, 1]]);
  });
});
