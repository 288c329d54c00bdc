import { describe, expect, it } from "vitest";
import { fitColumns, gridTemplate, sortRows } from "./columns.ts";
import { findMove } from "./grid-keys.ts";

const columns = [
  { key: "name", width: 100, grow: 1, rank: 0 },
  { key: "user", width: 50, grow: 0, rank: 2 },
  { key: "gpus", width: 50, grow: 0, rank: 1 },
  { key: "memory", width: 50, grow: 0, rank: 3 },
];
const keys = (widthPx: number, sortedBy = "name") => fitColumns(columns, widthPx, sortedBy).map(({ key }) => key);

describe("fitColumns", () => {
  it("gives way in the order of rank and keeps the order of columns", () => {
    expect(keys(250)).toEqual(["name", "user", "gpus", "memory"]);
    expect(keys(200)).toEqual(["name", "user", "gpus"]);
    expect(keys(150)).toEqual(["name", "gpus"]);
    expect(keys(10)).toEqual(["name"]);
  });

  it("always shows what the rows are sorted by", () => expect(keys(150, "memory")).toEqual(["name", "memory"]));

  it("becomes a grid", () => expect(gridTemplate(columns.slice(0, 2))).toBe("minmax(100px, 1fr) 50px"));
});

describe("sortRows", () => {
  const rows = [{ name: "gpu-10" }, { name: null }, { name: "gpu-9" }];
  const names = (column: string, descending: boolean) =>
    sortRows(rows, [{ key: "name", sortKey: ({ name }) => name }], { column, descending }).map(({ name }) => name);

  it("counts in words and puts missing values last, both ways", () => {
    expect(names("name", false)).toEqual(["gpu-9", "gpu-10", null]);
    expect(names("name", true)).toEqual(["gpu-10", "gpu-9", null]);
  });

  it("keeps the order where there is no such column", () => {
    expect(names("color", true)).toEqual(["gpu-10", null, "gpu-9"]);
  });
});

describe("findMove", () => {
  const at = { index: 5, count: 20, page: 10 };
  it.each([
    ["ArrowDown", 6],
    ["ArrowUp", 4],
    ["PageDown", 15],
    ["PageUp", 0],
    ["Home", 0],
    ["End", 19],
    ["a", null],
  ])("%s leads from row 5 to %s", (key, row) => expect(findMove(key, at)).toBe(row));

  it("begins at the first row", () => {
    expect(findMove("ArrowDown", { ...at, index: -1 })).toBe(0);
    expect(findMove("ArrowDown", { ...at, count: 0 })).toBeNull();
  });
});
