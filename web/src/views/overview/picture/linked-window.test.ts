import { describe, expect, it } from "vitest";
import { DEFAULT_VIEW, makeLayer } from "../../../layout/grammar.ts";
import { labelOf, layoutUnits, type UnitLayout } from "../../../layout/layout.ts";
import { makeNames } from "../../../layout/synthetic-units.ts";
import { findPath, groupBox } from "./groups.ts";
import { describeWindow, findWindow } from "./linked-window.ts";

function layoutOf(projects: readonly string[], space = { width: 900, height: 500 }): UnitLayout {
  const view = { ...DEFAULT_VIEW, layers: [makeLayer("project"), makeLayer("user")] };
  const columns = {
    rowCount: projects.length,
    attributes: new Map([
      ["project", makeNames(projects)],
      ["user", makeNames(projects.map((project, row) => `${project}-${row % 3}`))],
    ]),
  };
  return layoutUnits({ view, columns, filtered: null, space });
}

const many = (name: string, count: number) => new Array<string>(count).fill(name);
const SPACE = { width: 900, height: 500 };
const LAYOUT = layoutOf([...many("a", 60), ...many("b", 30), ...many("c", 12)]);

function findGroup(layout: UnitLayout, name: string): number {
  return (
    Array.from({ length: layout.groups.count }, (_, group) => group).find((group) => labelOf(layout, group) === name) ??
    0
  );
}

describe("the window of a link", () => {
  const box = groupBox(LAYOUT, findGroup(LAYOUT, "b"));
  const window = describeWindow(LAYOUT, box, SPACE);

  it("is described by the visible group, and found again", () => {
    expect(window.group[0]).toBe("b");
    const windowBox = findWindow(LAYOUT, window);
    for (const side of ["left", "top", "width", "height"] as const) expect(windowBox[side]).toBeCloseTo(box[side]);
  });

  it("follows its group to another place of another layout", () => {
    const other = layoutOf([...many("0", 200), ...many("b", 30), ...many("c", 80)]);
    const groupB = groupBox(other, findGroup(other, "b"));
    const windowBox = findWindow(other, window);
    const middle = [windowBox.left + windowBox.width / 2, windowBox.top + windowBox.height / 2] as const;
    expect(middle[0]).toBeGreaterThan(groupB.left);
    expect(middle[0]).toBeLessThan(groupB.left + groupB.width);
    expect(middle[1]).toBeGreaterThan(groupB.top);
    expect(middle[1]).toBeLessThan(groupB.top + groupB.height);
  });

  it("shows what is around a group that is gone", () => {
    const windowBox = findWindow(layoutOf(many("a", 20)), window);
    expect(Number.isFinite(windowBox.left)).toBe(true);
  });

  it("names the visible groups from the outermost, and none if everything is visible", () => {
    const inner = findGroup(LAYOUT, "a-1");
    expect(findPath(LAYOUT, groupBox(LAYOUT, inner)).map((group) => labelOf(LAYOUT, group))).toEqual(["a", "a-1"]);
    expect(findPath(LAYOUT, { left: -500, top: -500, width: 1500, height: 1500 })).toEqual([]);
  });
});
