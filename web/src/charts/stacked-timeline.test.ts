import { describe, expect, it } from "vitest";
import { listStep, niceTop, stackPaths, sumSteps, type TimelineSeries } from "./stacked-timeline.tsx";

const series: readonly TimelineSeries[] = [
  { key: "a", title: "A", color: "red", values: [1, 0, 2] },
  { key: "b", title: "B", color: "blue", values: [3, 0, 0] },
];

describe("stacked counts", () => {
  it("lie upon one another, and nothing is drawn where nothing is", () => {
    expect(sumSteps(series, 3)).toEqual([4, 0, 2]);
    expect(stackPaths(series, 3, 5)).toEqual(["M0 5v-1h1v1zM2 5v-2h1v2z", "M0 4v-3h1v3z"]);
  });

  it("are listed largest first at a step", () => {
    expect(listStep(series, 0).map(({ key }) => key)).toEqual(["b", "a"]);
    expect(listStep(series, 1)).toEqual([]);
    expect(listStep(series, 9)).toEqual([]);
  });

  it.each([
    [0, 1],
    [1, 1],
    [3, 3],
    [7, 8],
    [11, 15],
    [99, 100],
    [101, 150],
    [4097, 5000],
  ])("of %i end at %i", (value, top) => {
    expect(niceTop(value)).toBe(top);
  });
});
