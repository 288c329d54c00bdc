import { describe, expect, it } from "vitest";
import type { AttributeValues, UnitColumns } from "../../../layout/attributes.ts";
import { BUILTIN_VIEWS } from "../../../layout/builtin-views.ts";
import { labelOf } from "../../../layout/layout.ts";
import { findAttribute } from "../../../state/attributes.ts";
import { PICTURE_NAMES } from "../../../state/picture.ts";
import { fitScale } from "./camera.ts";
import { layoutToFit } from "./fit-layout.ts";
import { findGroup, listAncestry, listGroupRows, selectionOfGroup } from "./groups.ts";
import { findOutlined } from "./outline-painter.ts";
import { listAttributes } from "./unit-columns.ts";

const NODES = 16;
const PER_NODE = 8;
const space = { width: 1000, height: 600 };

function makeNames(rowCount: number, nameOf: (row: number) => string | null): AttributeValues {
  const values = Array.from({ length: rowCount }, (_, row) => nameOf(row));
  const names = [null, ...new Set(values.filter((value) => value !== null))];
  return { codes: Uint32Array.from(values, (value) => names.indexOf(value)), names };
}

/** Every second node is held by one workload, whose last two GPUs are only asked for. */
function makeColumns(): UnitColumns {
  const rowCount = NODES * PER_NODE;
  const isHeld = (row: number) => Math.floor(row / PER_NODE) % 2 === 0;
  const isRequested = (row: number) => row >= rowCount - 2;
  const name = (of: (row: number) => string | null) => makeNames(rowCount, of);
  const workload = (row: number) => (isHeld(row) || isRequested(row) ? `job-${Math.floor(row / PER_NODE)}` : null);
  return {
    rowCount,
    attributes: new Map<string, AttributeValues>([
      ["unit_state", name((row) => (isRequested(row) ? "requested" : isHeld(row) ? "allocated" : "free"))],
      ["node", name((row) => `gpu-${Math.floor(row / PER_NODE)}`)],
      ["partition", name((row) => (row % 16 < 8 ? "a100" : "v100"))],
      ["node_partitions", name((row) => (row % 16 < 8 ? "a100" : "v100"))],
      ["workload", name(workload)],
      ["user", name((row) => (workload(row) === null ? null : "ada"))],
      ["project", name((row) => (workload(row) === null ? null : "nlp"))],
      ["waits_for", name((row) => (isRequested(row) ? "free GPUs" : null))],
      ["resource_type", name((row) => (isRequested(row) ? "A100-2" : null))],
      ["gpu_util_ratio", new Float32Array(rowCount).fill(0.5)],
      ["wait_s", new Float32Array(rowCount).fill(60)],
    ]),
  };
}

describe("the arrangements of the picture", () => {
  it("are those that links can name, in colors that links can name", () => {
    expect(BUILTIN_VIEWS.map(({ key }) => key)).toEqual([...PICTURE_NAMES]);
    for (const { view } of BUILTIN_VIEWS) expect(findAttribute(view.mark.color ?? "")).not.toBeNull();
  });

  it("ask for attributes that units have", () => {
    const attributes = makeColumns().attributes;
    for (const { view } of BUILTIN_VIEWS)
      expect(listAttributes(view).filter((name) => !attributes.has(name))).toEqual([]);
  });

  it.each(BUILTIN_VIEWS)("show every unit once and in bounds: $title", ({ view }) => {
    const columns = makeColumns();
    const layout = layoutToFit({ view, columns, space });
    const expected = view.units === "requested" ? 2 : columns.rowCount - 2;
    expect(layout.unitCount).toBe(expected);
    expect(layout.size.filter((size) => size > 0).length).toBe(expected);
    expect(Math.max(...layout.x) + 1).toBeLessThanOrEqual(layout.bounds.width + 1e-3);
    expect(Math.max(...layout.y) + 1).toBeLessThanOrEqual(layout.bounds.height + 1e-3);
  });

  it("keep room for the names of hosts where these fit, and none where they do not", () => {
    const hosts = BUILTIN_VIEWS.find(({ key }) => key === "fragmentation-by-host")?.view;
    if (!hosts) throw new Error("no view");
    const roomIn = (width: number, height: number) =>
      layoutToFit({ view: hosts, columns: makeColumns(), space: { width, height } }).groups.labelHeight[2] ?? 0;
    expect(roomIn(1000, 600)).toBeGreaterThan(0);
    expect(roomIn(120, 80)).toBe(0);
  });

  it.each(BUILTIN_VIEWS)("keep room for the names of their outer groups: $title", ({ view }) => {
    const layout = layoutToFit({ view, columns: makeColumns(), space });
    const room = (layout.groups.labelHeight[1] ?? 0) * fitScale(layout.bounds, space);
    expect(room).toBeGreaterThan(12);
  });
});

describe("a selected workload", () => {
  const columns = makeColumns();
  const rows = Array.from({ length: PER_NODE }, (_, index) => index);

  it("is one box where units are grouped by workload", () => {
    const view = BUILTIN_VIEWS[0]?.view;
    if (!view) throw new Error("no view");
    const layout = layoutToFit({ view, columns, space });
    const { groups, rows: single } = findOutlined(layout, rows);
    expect(groups.map((group) => [labelOf(layout, group), layout.groups.unitCount[group]])).toEqual([
      ["job-0", PER_NODE],
    ]);
    expect(single).toEqual([]);
  });

  it("is its units where they are not all that a group has", () => {
    const view = BUILTIN_VIEWS[3]?.view;
    if (!view) throw new Error("no view");
    const layout = layoutToFit({ view, columns, space, filtered: null });
    expect(findOutlined(layout, rows.slice(1))).toEqual({ groups: [], rows: rows.slice(1) });
    expect(findOutlined(layout, rows).groups.length).toBe(1);
  });
});

describe("a group of the picture", () => {
  const view = BUILTIN_VIEWS[0]?.view;
  if (!view) throw new Error("no view");
  const layout = layoutToFit({ view, columns: makeColumns(), space, filtered: null });

  it("is found at any of its units, and has them all", () => {
    for (let row = 0; row < layout.size.length; row += 1) {
      if (layout.size[row] === 0) continue;
      const group = findGroup(layout, (layout.x[row] ?? 0) + 0.5, (layout.y[row] ?? 0) + 0.5);
      expect(group).toBe(layout.group[row]);
      expect(listGroupRows(layout, group ?? 0)).toContain(row);
    }
    expect(findGroup(layout, -1, -1)).toBeNull();
  });

  it("has as many rows as it says, and its ancestors hold them", () => {
    for (let group = 1; group < layout.groups.count; group += 1) {
      const rows = listGroupRows(layout, group);
      expect(rows.length).toBe(layout.groups.unitCount[group]);
      for (const around of listAncestry(layout, group)) {
        expect(listGroupRows(layout, around)).toEqual(expect.arrayContaining([...rows]));
      }
      expect(findOutlined(layout, rows).rows).toEqual([]);
    }
  });

  it("is selected by what its units have in common, a workload as itself", () => {
    const keys = Array.from({ length: layout.groups.count - 1 }, (_, at) => selectionOfGroup(layout, at + 1, "gpus"));
    expect(keys).toContainEqual({ kind: "group", key: "gpus/project=nlp" });
    expect(keys).toContainEqual({ kind: "group", key: "gpus/project=nlp/user=ada" });
    expect(keys).toContainEqual({ kind: "workload", key: "job-0" });
    expect(keys.filter((key) => key?.key === "gpus/project/unit_state=free").length).toBe(3);
  });
});
