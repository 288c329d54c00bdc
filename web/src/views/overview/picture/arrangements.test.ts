import { describe, expect, it } from "vitest";
import type { AttributeValues, UnitColumns } from "../../../layout/attributes.ts";
import { BUILTIN_VIEWS } from "../../../layout/builtin-views.ts";
import { labelOf } from "../../../layout/layout.ts";
import { findAttribute } from "../../../state/attributes.ts";
import { PICTURE_NAMES } from "../../../state/picture.ts";
import { fitScale } from "./camera.ts";
import { layoutToFit } from "./fit-layout.ts";
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
  const held = (row: number) => Math.floor(row / PER_NODE) % 2 === 0;
  const isRequested = (row: number) => row >= rowCount - 2;
  const name = (of: (row: number) => string | null) => makeNames(rowCount, of);
  const workload = (row: number) => (held(row) || isRequested(row) ? `job-${Math.floor(row / PER_NODE)}` : null);
  return {
    rowCount,
    attributes: new Map<string, AttributeValues>([
      ["unit_state", name((row) => (isRequested(row) ? "requested" : held(row) ? "allocated" : "free"))],
      ["node", name((row) => `gpu-${Math.floor(row / PER_NODE)}`)],
      ["partition", name((row) => (row % 16 < 8 ? "a100" : "v100"))],
      ["workload", name(workload)],
      ["user", name((row) => (workload(row) === null ? null : "ada"))],
      ["project", name((row) => (workload(row) === null ? null : "nlp"))],
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
    const known = makeColumns().attributes;
    for (const { view } of BUILTIN_VIEWS) expect(listAttributes(view).filter((name) => !known.has(name))).toEqual([]);
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
