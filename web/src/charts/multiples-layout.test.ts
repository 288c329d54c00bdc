import { describe, expect, it } from "vitest";
import { findPlot, findPlots, layoutMultiples, type MultiplesGroup, stepPlot } from "./multiples-layout.ts";

function nodes(count: number, each = 8): readonly MultiplesGroup[] {
  return Array.from({ length: count }, (_, node) => ({
    title: `gpu-${node}`,
    slots: Array.from({ length: each }, (_, index) => node * each + index),
  }));
}

describe("small multiples", () => {
  it.each([
    [1, "plot"],
    [8, "plot"],
    [128, "strip"],
    [1250, "cell"],
  ])("of %i nodes are drawn as %s", (count, level) => {
    const layout = layoutMultiples(nodes(count), 860, 420);
    expect(layout.level).toBe(level);
    expect(layout.plots).toHaveLength(count * 8);
    const rights = layout.plots.map(({ left }) => left + layout.plotWidth);
    expect(Math.max(...rights)).toBeLessThanOrEqual(861);
  });

  it("keep one row per node where there is room", () => {
    const layout = layoutMultiples(nodes(8), 860, 420);
    expect(new Set(layout.plots.map(({ top }) => top)).size).toBe(8);
    expect(layout.titles.map(({ title }) => title)).toEqual(nodes(8).map(({ title }) => title));
  });

  it("break a row of hundreds", () => {
    const all = [{ title: "all", slots: Array.from({ length: 512 }, (_, index) => index) }];
    const layout = layoutMultiples(all, 860, 420);
    expect(layout.level).toBe("strip");
    expect(layout.plots).toHaveLength(512);
  });

  it("leave places free where nobody is", () => {
    const layout = layoutMultiples([{ title: "n", slots: [null, 0, null, 1] }], 400, 100);
    expect(layout.plots.map(({ plot }) => plot)).toEqual([0, 1]);
    expect(layout.plots[0]?.left).toBeGreaterThan(layout.titleWidth);
  });

  it("scroll where even cells do not fit", () => {
    const layout = layoutMultiples(nodes(4000), 300, 100);
    expect(layout.level).toBe("cell");
    expect(layout.height).toBeGreaterThan(100);
  });

  it("are found by place, by box and by keys", () => {
    const layout = layoutMultiples(nodes(4), 860, 420);
    const [first, second] = layout.plots;
    expect(findPlot(layout, (first?.left ?? 0) + 1, (first?.top ?? 0) + 1)).toBe(0);
    expect(findPlot(layout, -5, 3)).toBeNull();
    const box = { left: 0, top: 0, right: (second?.left ?? 0) + 1, bottom: layout.plotHeight };
    expect(findPlots(layout, box)).toEqual([0, 1]);
    expect(stepPlot(layout, null, "ArrowRight")).toBe(0);
    expect(stepPlot(layout, 0, "ArrowRight")).toBe(1);
    expect(stepPlot(layout, 1, "ArrowDown")).toBe(9);
    expect(stepPlot(layout, 0, "ArrowUp")).toBe(0);
    expect(stepPlot(layout, 0, "Enter")).toBeNull();
  });
});
