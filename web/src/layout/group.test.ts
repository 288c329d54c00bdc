import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AttributeValues, UnitColumns } from "./attributes.ts";
import { type Bins, DEFAULT_VIEW, type GroupSort, type Layer, makeLayer, type UnitSort, type View } from "./grammar.ts";
import { type GroupOptions, type GroupTree, groupUnits } from "./group.ts";
import { DEFAULT_OPTIONS } from "./layout.ts";
import { makeNames } from "./synthetic-units.ts";

function makeColumns(attributes: Readonly<Record<string, AttributeValues>>): UnitColumns {
  const first = Object.values(attributes)[0];
  const rowCount = first === undefined ? 0 : "codes" in first ? first.codes.length : first.length;
  return { rowCount, attributes: new Map(Object.entries(attributes)) };
}

function group(
  layers: readonly Layer[],
  columns: UnitColumns,
  { sort = null, ...options }: Partial<GroupOptions> & { readonly sort?: UnitSort | null } = {},
): GroupTree {
  const view: View = { ...DEFAULT_VIEW, layers, mark: { ...DEFAULT_VIEW.mark, sort } };
  const rows = new Uint32Array(columns.rowCount).map((_, row) => row);
  return groupUnits(view, columns, rows, { ...DEFAULT_OPTIONS, ...options });
}

/** `label:rows` of the innermost groups, with their parents' labels before. */
function describeGroups(tree: GroupTree): readonly string[] {
  const label = (index: number): string => {
    const depth = tree.depth[index] ?? 0;
    if (depth === 0) return "";
    const ownLabel = tree.layers[depth - 1]?.labels[tree.key[index] ?? 0] ?? "?";
    return depth === 1 ? ownLabel : `${label(tree.parent[index] ?? 0)}/${ownLabel}`;
  };
  const paths: string[] = [];
  for (let index = tree.depthStart.at(-2) ?? 0; index < tree.groupCount; index += 1) {
    const start = tree.unitStart[index] ?? 0;
    paths.push(`${label(index)}:${tree.rows.subarray(start, start + (tree.unitCount[index] ?? 0)).join(",")}`);
  }
  return paths;
}

const PROJECT = makeNames(["b", "a", null, "b", "c", "b", "a", null]);
const USER = makeNames(["x", "x", "y", "y", "x", "x", "z", null]);
const UTIL = Float32Array.of(0.9, 0.2, 0.5, 0.7, Number.NaN, 0.8, 0.4, 0.1);
const COLUMNS = makeColumns({ project: PROJECT, user: USER, util: UTIL });
const sortedBy = (by: GroupSort["by"], order: GroupSort["order"], of: string | null = null) => [
  makeLayer("project", { sort: { by, order, of } }),
];

describe("groupUnits", () => {
  it("nests groups; units keep their order; the missing is a group of its own, last", () => {
    expect(describeGroups(group([makeLayer("project"), makeLayer("user")], COLUMNS))).toEqual([
      "a/x:1",
      "a/z:6",
      "b/x:0,5",
      "b/y:3",
      "c/x:4",
      "none/y:2",
      "none/none:7",
    ]);
  });

  it("numbers groups breadth first", () => {
    const tree = group([makeLayer("project"), makeLayer("user")], COLUMNS);
    expect([...tree.parent]).toEqual([0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 4]);
    expect([...tree.childStart]).toEqual([1, 5, 7, 9, 10, 12, 12, 12, 12, 12, 12, 12, 12]);
    expect([...tree.unitCount]).toEqual([8, 2, 3, 1, 2, 1, 1, 2, 1, 1, 1, 1]);
  });

  it("sorts by name, count or the mean of a value, with the missing always last", () => {
    const names = (layers: readonly Layer[]) =>
      describeGroups(group(layers, COLUMNS)).map((text) => text.split(":")[0]);
    expect(names(sortedBy("name", "descending"))).toEqual(["c", "b", "a", "none"]);
    expect(names(sortedBy("count", "descending"))).toEqual(["b", "a", "c", "none"]);
    expect(names(sortedBy("count", "ascending"))).toEqual(["c", "a", "b", "none"]);
    expect(names(sortedBy("value", "ascending", "util"))).toEqual(["a", "b", "c", "none"]);
    expect(names(sortedBy("value", "descending", "util"))).toEqual(["b", "a", "c", "none"]);
  });

  it("calls the missing by the word of its attribute", () => {
    const words = { missing: "unknown", missingOf: new Map([["project", "free"]]), other: "other" };
    const tree = group([makeLayer("project"), makeLayer("user")], COLUMNS, { words });
    expect(describeGroups(tree).at(-1)).toBe("free/unknown:7");
  });

  it("tells the missing apart by another attribute where it is asked to", () => {
    const columns = makeColumns({
      project: makeNames(["a", null, null, null, null]),
      unit_state: makeNames(["held", "down", "free", "down", "odd"]),
    });
    const apart = {
      attributes: new Set(["project"]),
      by: "unit_state",
      words: new Map([
        ["free", "free"],
        ["down", "out of service"],
        ["stale", "stale"],
      ]),
    };
    const words = { missing: "none", missingOf: new Map(), other: "other", apart };
    const tree = group([makeLayer("project")], columns, { words });
    expect(describeGroups(tree)).toEqual(["a:0", "none:4", "free:2", "out of service:1,3"]);
    expect(tree.layers[0]?.keys.at(-1)).toEqual({
      kind: "missing",
      apart: { attribute: "unit_state", name: "down" },
    });
  });

  it("has one group of the missing for an attribute nobody sent", () => {
    expect(describeGroups(group([makeLayer("rack")], COLUMNS))).toEqual(["none:0,1,2,3,4,5,6,7"]);
  });

  it("groups by the value of a number, or by its bins", () => {
    const columns = makeColumns({ gpus: Float64Array.of(8, 16, 8, 1, Number.NaN) });
    expect(describeGroups(group([makeLayer("gpus")], columns))).toEqual(["1:3", "8:0,2", "16:1", "none:4"]);
    const bins: Bins = { metric: "util", bins: 5 };
    expect(describeGroups(group([makeLayer(bins)], COLUMNS))).toEqual([
      "0 – 0.2:7",
      "0.2 – 0.4:1",
      "0.4 – 0.6:2,6",
      "0.6 – 0.8:3",
      "0.8 – 1:0,5",
      "none:4",
    ]);
  });

  it("sorts units within their group", () => {
    const sort: UnitSort = { by: "util", order: "descending" };
    expect(describeGroups(group([makeLayer("user")], COLUMNS, { sort }))).toEqual([
      "x:0,5,1,4",
      "y:3,2",
      "z:6",
      "none:7",
    ]);
  });

  it("puts the smallest of very many values together, with their number", () => {
    const names = Array.from({ length: 10_000 }, (_, index) => `user-${index}`);
    const columns = makeColumns({ user: makeNames([...names, "user-7", "user-9999", "user-9999", null]) });
    const tree = group([makeLayer("user", { sort: { by: "count", order: "descending", of: null } })], columns, {
      foldLimit: 3,
    });
    const labels = Array.from(tree.key.subarray(1), (key) => tree.layers[0]?.labels[key]);
    expect(labels).toEqual(["user-9999", "user-7", "user-0", "other (9997 groups)", "none"]);
    expect([...tree.unitCount.subarray(1)]).toEqual([3, 2, 1, 9997, 1]);
    expect(tree.layers[0]?.keys[3]).toEqual({ kind: "other", distinct: 9997 });
    expect(group([makeLayer("user")], columns, { unfolded: ["user"] }).groupCount).toBe(10_002);
  });

  it("takes codes and names that are out of order as missing", () => {
    const columns = makeColumns({ user: { codes: Uint32Array.of(1, 2, 9), names: [null, "a", null] } });
    expect(describeGroups(group([makeLayer("user")], columns))).toEqual(["a:0", "none:1,2"]);
  });

  it("has every unit once, in the group of its own names", () => {
    const name = fc.option(fc.constantFrom("a", "b", "c", "user-10", "user-9"));
    fc.assert(
      fc.property(fc.array(fc.tuple(name, name, name)), fc.integer({ min: 1, max: 4 }), (units, foldLimit) => {
        const columns = makeColumns(
          Object.fromEntries([0, 1, 2].map((at) => [`a${at}`, makeNames(units.map((unit) => unit[at] ?? null))])),
        );
        const tree = group(
          ["a0", "a1", "a2"].map((by) => makeLayer(by)),
          columns,
          { foldLimit },
        );
        expect([...tree.rows].toSorted((a, b) => a - b)).toEqual(units.map((_, row) => row));
        for (let index = 1; index < tree.groupCount; index += 1) {
          const layer = (tree.depth[index] ?? 0) - 1;
          const key = tree.layers[layer]?.keys[tree.key[index] ?? 0];
          const start = tree.unitStart[index] ?? 0;
          expect(tree.unitCount[index]).toBeGreaterThan(0);
          for (const row of tree.rows.subarray(start, start + (tree.unitCount[index] ?? 0))) {
            const value = units[row]?.[layer] ?? null;
            if (key?.kind === "name") expect(value).toBe(key.name);
            else expect(value === null).toBe(key?.kind === "missing");
          }
        }
      }),
    );
  });
});
