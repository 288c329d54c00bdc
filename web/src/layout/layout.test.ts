import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { UnitColumns } from "./attributes.ts";
import { BUILTIN_VIEWS } from "./builtin-views.ts";
import {
  DEFAULT_MARK,
  DEFAULT_VIEW,
  FILTERED_MODES,
  GROUP_SIZES,
  LAYOUT_KINDS,
  type Layer,
  type LayoutKind,
  type Mark,
  makeLayer,
  SHOWN_UNITS,
  UNIT_ORIGINS,
  type View,
} from "./grammar.ts";
import { type LayoutInput, labelOf, layoutUnits, listBuffers, type UnitLayout } from "./layout.ts";
import { findLayoutFault } from "./layout-faults.ts";
import { makeNames, makeSyntheticUnits } from "./synthetic-units.ts";

const SPACE = { width: 1200, height: 800 };
/** Without any room between units and around groups, places can be counted by hand. */
const TIGHT_MARK: Mark = { ...DEFAULT_MARK, padding: 0 };
const TIGHT: Partial<Omit<Layer, "by">> = { padding: 0, label: false };

function columnsOf(attributes: Readonly<Record<string, readonly (string | null)[]>>): UnitColumns {
  const entries = Object.entries(attributes).map(([name, values]) => [name, makeNames(values)] as const);
  return { rowCount: Object.values(attributes)[0]?.length ?? 0, attributes: new Map(entries) };
}

/** Groups a, b, c of 4, 2 and 1 units. */
const ABC = columnsOf({ group: ["a", "b", "a", "a", "c", "b", "a"] });

function layoutAbc(layer: Partial<Omit<Layer, "by">>, mark: Partial<Mark> = {}, space = SPACE): UnitLayout {
  const view: View = {
    ...DEFAULT_VIEW,
    layers: [makeLayer("group", { ...TIGHT, ...layer })],
    mark: { ...TIGHT_MARK, ...mark },
  };
  return layoutUnits({ view, columns: ABC, filtered: null, space });
}

function boxesOf({ groups }: UnitLayout): readonly string[] {
  return Array.from(groups.x.subarray(1), (x, index) => {
    const group = index + 1;
    return `${x},${groups.y[group]} ${groups.width[group]}×${groups.height[group]}`;
  });
}

function unitsOf({ x, y }: UnitLayout): readonly string[] {
  return Array.from(x, (left, row) => `${left},${y[row]}`);
}

function shownRows({ view, columns, filtered }: LayoutInput): readonly boolean[] {
  const namesAt = (name: string, row: number) => {
    const values = columns.attributes.get(name);
    return values !== undefined && "codes" in values ? (values.names[values.codes[row] ?? 0] ?? null) : null;
  };
  const counted = new Set<string | null>();
  return Array.from({ length: columns.rowCount }, (_, row) => {
    const isRequested = namesAt("unit_state", row) === "requested";
    const workload = namesAt("workload", row);
    const isAgain = isRequested && columns.attributes.has("workload") && counted.has(workload);
    if (isRequested) counted.add(workload);
    if (view.filtered === "vanish" && filtered?.[row] === 1) return false;
    if (view.units === "waiting") return isRequested && !isAgain;
    return view.units === "all" || isRequested === (view.units === "requested");
  });
}

describe("each layout, worked by hand", () => {
  it("pack: 2 × 2, then 2 × 1 and 1 × 1 next to it", () => {
    const layout = layoutAbc({ layout: "pack" }, {}, { width: 4, height: 2 });
    expect(boxesOf(layout)).toEqual(["0,0 2×2", "2,0 2×1", "2,1 1×1"]);
    expect(unitsOf(layout)).toEqual(["0,0", "2,0", "1,0", "0,1", "2,1", "3,0", "1,1"]);
    expect(layout.bounds).toEqual({ width: 4, height: 2 });
  });

  it("pack, uniform: boxes as large as the largest", () => {
    const layout = layoutAbc({ layout: "pack", size: "uniform" }, {}, { width: 1, height: 1 });
    expect(boxesOf(layout)).toEqual(["0,0 2×2", "2,0 2×2", "0,2 2×2"]);
  });

  it("fillX: side by side at one height, as long as their units need", () => {
    const layout = layoutAbc({ layout: "fillX", limit: 2 }, { layout: "fillX" });
    expect(boxesOf(layout)).toEqual(["0,0 2×2", "2,0 1×2", "3,0 1×2"]);
    expect(unitsOf(layout)).toEqual(["0,0", "2,0", "0,1", "1,0", "3,0", "2,1", "1,1"]);
  });

  it("fillX, uniform, with units from the bottom: a bar chart", () => {
    const layout = layoutAbc({ layout: "fillX", size: "uniform" }, { layout: "fillY", limit: 1, from: "bottom" });
    expect(boxesOf(layout)).toEqual(["0,0 1×4", "1,0 1×4", "2,0 1×4"]);
    expect(unitsOf(layout)).toEqual(["0,3", "1,3", "0,2", "0,1", "2,3", "1,2", "0,0"]);
  });

  it("fillY: one below the other at one width", () => {
    const layout = layoutAbc({ layout: "fillY", limit: 2 }, { layout: "fillY" });
    expect(boxesOf(layout)).toEqual(["0,0 2×2", "0,2 2×1", "0,3 2×1"]);
  });

  it("listX: in order, wrapping at the limit, rows of one height", () => {
    const layout = layoutAbc({ layout: "listX", limit: 3 }, { layout: "fillY", limit: 2 });
    expect(boxesOf(layout)).toEqual(["0,0 2×2", "0,2 2×1", "2,2 1×1"]);
    const descending = { by: "name", order: "descending", of: null } as const;
    const reversed = layoutAbc({ layout: "listX", limit: 3, sort: descending }, { layout: "fillY", limit: 2 });
    expect(boxesOf(reversed)).toEqual(["0,0 1×1", "1,0 2×1", "0,1 2×2"]);
  });

  it("listY: the same, downwards", () => {
    const layout = layoutAbc({ layout: "listY", limit: 3 }, { layout: "fillY", limit: 2 });
    expect(boxesOf(layout)).toEqual(["0,0 2×2", "0,2 2×1", "2,0 1×1"]);
  });

  it("list: wraps where it would leave the space", () => {
    const columns = columnsOf({ node: Array.from({ length: 12 }, (_, index) => `n${index}`) });
    const view: View = {
      ...DEFAULT_VIEW,
      layers: [makeLayer("node", { ...TIGHT, layout: "listX" })],
      mark: TIGHT_MARK,
    };
    const at = (width: number, height: number) =>
      layoutUnits({ view, columns, filtered: null, space: { width, height } }).bounds;
    expect(at(4, 3)).toEqual({ width: 4, height: 3 });
    expect(at(6, 2)).toEqual({ width: 6, height: 2 });
    expect(at(12, 1)).toEqual({ width: 12, height: 1 });
  });

  it("keeps room for padding and labels", () => {
    const layout = layoutUnits({
      view: { ...DEFAULT_VIEW, layers: [makeLayer("group", { layout: "fillX", padding: 0.5 })], mark: TIGHT_MARK },
      columns: columnsOf({ group: ["a", "b"] }),
      filtered: null,
      space: SPACE,
      options: { labelHeights: [2] },
    });
    expect(boxesOf(layout)).toEqual(["0,0 2×4", "2.5,0 2×4"]);
    expect(unitsOf(layout)).toEqual(["0.5,2.5", "3,2.5"]);
  });
});

const kinds = fc.constantFrom<LayoutKind>(...LAYOUT_KINDS);
const limits = fc.option(fc.integer({ min: 1, max: 20 }));
const anyLayer: fc.Arbitrary<Layer> = fc
  .record({
    by: fc.constantFrom("node", "partition", "project", "user", "workload", "gpu_util_ratio", "nothing"),
    layout: kinds,
    size: fc.constantFrom(...GROUP_SIZES),
    label: fc.boolean(),
    padding: fc.option(fc.double({ min: 0, max: 3, noNaN: true })),
    aspect: fc.double({ min: 0.2, max: 5, noNaN: true }),
    limit: limits,
  })
  .map(({ by, ...layer }) => makeLayer(by === "gpu_util_ratio" ? { metric: by, bins: 4 } : by, layer));
const anyView: fc.Arbitrary<View> = fc.record({
  units: fc.constantFrom(...SHOWN_UNITS),
  filtered: fc.constantFrom(...FILTERED_MODES),
  layers: fc.array(anyLayer, { maxLength: 4 }),
  mark: fc.record({
    layout: kinds,
    sort: fc.constantFrom(null, { by: "gpu_util_ratio", order: "descending" } as const),
    padding: fc.double({ min: 0, max: 1, noNaN: true }),
    limit: limits,
    from: fc.constantFrom(...UNIT_ORIGINS),
    color: fc.constant(null),
  }),
});

describe("any layout", () => {
  it("has every unit once, nothing overlaps, everything lies in its group", () => {
    const side = fc.integer({ min: 1, max: 3000 });
    fc.assert(
      fc.property(
        anyView,
        fc.integer({ min: 0, max: 300 }),
        fc.integer(),
        side,
        side,
        (view, count, seed, width, height) => {
          const columns = makeSyntheticUnits(count, seed);
          const filtered = new Uint8Array(columns.rowCount).map((_, row) => ((row * 7 + seed) % 3 === 0 ? 1 : 0));
          const input: LayoutInput = { view, columns, filtered, space: { width, height } };
          const layout = layoutUnits(input);
          expect(findLayoutFault(layout, shownRows(input))).toBeNull();
          expect(layoutUnits(input)).toEqual(layout);
        },
      ),
      { numRuns: 150 },
    );
  });

  it("is right with 100,000 units in four layers", { timeout: 60_000 }, () => {
    const columns = makeSyntheticUnits(100_000);
    const layers = ["partition", "project", "user", "workload"].map((by) => makeLayer(by));
    for (const outer of ["pack", "listX", "fillY"] as const) {
      const view: View = { ...DEFAULT_VIEW, layers: layers.with(0, makeLayer("partition", { layout: outer })) };
      const input: LayoutInput = { view, columns, filtered: null, space: SPACE };
      expect(findLayoutFault(layoutUnits(input), shownRows(input))).toBeNull();
    }
  });

  it("of the built-in views comes near to the shape of the space", () => {
    const columns = makeSyntheticUnits(4000);
    for (const { view } of BUILTIN_VIEWS) {
      const input: LayoutInput = { view, columns, filtered: null, space: SPACE };
      const layout = layoutUnits(input);
      expect(findLayoutFault(layout, shownRows(input))).toBeNull();
      expect(Math.abs(Math.log(layout.bounds.width / layout.bounds.height / 1.5))).toBeLessThan(0.5);
    }
  });
});

describe("special cases", () => {
  const layers = [makeLayer("project"), makeLayer("workload", { layout: "listX" })];
  const VIEW: View = { ...DEFAULT_VIEW, layers };

  it("no unit at all", () => {
    for (const view of [VIEW, DEFAULT_VIEW, ...BUILTIN_VIEWS.map((builtin) => builtin.view)]) {
      const layout = layoutUnits({ view, columns: makeSyntheticUnits(0), filtered: null, space: SPACE });
      expect(layout.bounds).toEqual({ width: 0, height: 0 });
      expect(layout.groups.count).toBe(1);
    }
  });

  it("one unit, also where there is no space to draw on", () => {
    const columns = columnsOf({ project: ["p"] });
    const layout = layoutUnits({ view: DEFAULT_VIEW, columns, filtered: null, space: { width: 0, height: 0 } });
    expect([unitsOf(layout), layout.bounds]).toEqual([["0,0"], { width: 1, height: 1 }]);
    expect(findLayoutFault(layoutUnits({ view: VIEW, columns, filtered: null, space: SPACE }), [true])).toBeNull();
  });

  it("all units filtered: they stay, or vanish", () => {
    const columns = columnsOf({ project: ["p", "q", "p"] });
    const filtered = new Uint8Array(3).fill(1);
    const faded = layoutUnits({ view: VIEW, columns, filtered, space: SPACE });
    expect([...faded.size]).toEqual([1, 1, 1]);
    expect([...faded.groups.matchingCount]).toEqual(new Array(faded.groups.count).fill(0));
    const vanished = layoutUnits({ view: { ...VIEW, filtered: "vanish" }, columns, filtered, space: SPACE });
    expect([...vanished.size]).toEqual([0, 0, 0]);
    expect(unitsOf(vanished)).toEqual(["0,0", "0,0", "0,0"]);
  });

  it("some units filtered: groups say how many match", () => {
    const columns = columnsOf({ project: ["p", "q", "p"] });
    const filtered = Uint8Array.of(0, 1, 1);
    const faded = layoutUnits({ view: { ...VIEW, layers: layers.slice(0, 1) }, columns, filtered, space: SPACE });
    expect([...faded.groups.unitCount]).toEqual([3, 2, 1]);
    expect([...faded.groups.matchingCount]).toEqual([1, 1, 0]);
  });

  it("only the GPUs, or only what is asked for", () => {
    const columns = columnsOf({ unit_state: ["free", "requested", null, "allocated"] });
    const sizes = (units: View["units"], from: UnitColumns = columns) => [
      ...layoutUnits({ view: { ...DEFAULT_VIEW, units }, columns: from, filtered: null, space: SPACE }).size,
    ];
    expect(sizes("all")).toEqual([1, 1, 1, 1]);
    expect(sizes("gpus")).toEqual([1, 0, 1, 1]);
    expect(sizes("requested")).toEqual([0, 1, 0, 0]);
    expect(sizes("requested", columnsOf({ unit_state: ["free", null] }))).toEqual([0, 0]);
    expect(sizes("requested", columnsOf({ node: ["n", null] }))).toEqual([0, 0]);
  });

  it("names of 200 characters, from right to left, and emoji are labels like others", () => {
    const names = ["x".repeat(200), "فريق-الذكاء", "צוות", "🦑🦑", "👩🏽‍🔬 lab", "", " "];
    const input: LayoutInput = {
      view: { ...DEFAULT_VIEW, layers: [makeLayer("project", { layout: "listX" })] },
      columns: columnsOf({ project: [...names, ...names] }),
      filtered: null,
      space: SPACE,
    };
    const layout = layoutUnits(input);
    expect(findLayoutFault(layout, shownRows(input))).toBeNull();
    const labels = Array.from({ length: names.length }, (_, index) => labelOf(layout, index + 1));
    expect(labels.toSorted()).toEqual(names.toSorted());
    expect([...layout.groups.unitCount.subarray(1)]).toEqual(names.map(() => 2));
  });

  it("an attribute of 10,000 values: the largest groups, and the others together with their number", () => {
    const user = Array.from({ length: 10_000 }, (_, index) => `user-${index}`);
    const input: LayoutInput = {
      view: { ...DEFAULT_VIEW, layers: [makeLayer("user")] },
      columns: columnsOf({ user: [...user, ...user.slice(9000)] }),
      filtered: null,
      space: SPACE,
    };
    const layout = layoutUnits(input);
    expect(findLayoutFault(layout, shownRows(input))).toBeNull();
    const last = layout.groups.count - 1;
    expect(layout.groups.count).toBe(1 + 500 + 1);
    expect(labelOf(layout, last)).toBe("other (9500 groups)");
    expect(layout.groups.unitCount[last]).toBe(9500 + 500);
  });

  it("travels to a worker and back", () => {
    const input: LayoutInput = { view: VIEW, columns: makeSyntheticUnits(50), filtered: null, space: SPACE };
    const layout = layoutUnits(structuredClone(input));
    expect(layout).toEqual(layoutUnits(input));
    const copy = structuredClone(layout, { transfer: [...listBuffers(layout)] });
    expect(copy).toEqual(layoutUnits(input));
    expect(layout.x.length + layout.groups.key.length).toBe(0);
  });

  it("gives the same picture from the same view and data", () => {
    const columns = makeSyntheticUnits(24);
    for (const { key, view } of BUILTIN_VIEWS) {
      const layout = layoutUnits({ view, columns, filtered: null, space: SPACE });
      const round = (values: Float32Array) => Array.from(values, (value) => Math.round(value * 100) / 100).join(" ");
      const labels = Array.from({ length: layout.groups.count }, (_, group) => labelOf(layout, group)).join("|");
      expect({ x: round(layout.x), y: round(layout.y), labels }).toMatchSnapshot(key);
    }
  });
});
