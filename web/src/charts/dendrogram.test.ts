import { describe, expect, it } from "vitest";
import { drawBranches } from "./dendrogram.tsx";
import { moveBrush } from "./scatter-chart.tsx";

describe("a tree", () => {
  it("is one path per cluster and one for what joins them", () => {
    const linkage = [
      [0, 1, 1, 2],
      [2, 3, 2, 2],
      [4, 5, 8, 4],
    ];
    const branches = drawBranches(linkage, [0, 1, 2, 3], ["blue", "blue", "amber", "amber"], 40, (y) => 10 - y);
    expect(branches.map(({ color }) => color).sort()).toEqual(["amber", "blue", null]);
    expect(branches.find(({ color }) => color === null)?.path).toBe("M10 2H30");
    expect(branches.find(({ color }) => color === "blue")?.path).toContain("M5 10V9");
  });

  it("of nothing is nothing", () => {
    expect(drawBranches([], [], [], 40, (y) => y)).toEqual([]);
  });
});

describe("a brush by keys", () => {
  const bounds = { xFrom: 0, xTo: 100, yFrom: 0, yTo: 10 };
  const brush = { xFrom: 40, xTo: 60, yFrom: 4, yTo: 6 };

  it("is moved by arrows, and its corner with Shift", () => {
    expect(moveBrush(brush, bounds, "ArrowRight", false)).toEqual({ xFrom: 44, xTo: 64, yFrom: 4, yTo: 6 });
    expect(moveBrush(brush, bounds, "ArrowUp", true)).toEqual({ xFrom: 40, xTo: 60, yFrom: 4, yTo: 6.4 });
    expect(moveBrush(brush, bounds, "x", false)).toBeNull();
  });
});
