// Reading and writing view documents, and the built-in ones.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BUILTIN_VIEWS } from "./builtin-views.ts";
import {
  DEFAULT_VIEW,
  FILTERED_MODES,
  GROUP_SIZES,
  LAYOUT_KINDS,
  type Layer,
  type Mark,
  makeLayer,
  SHOWN_UNITS,
  SORT_ORDERS,
  serializeView,
  UNIT_ORIGINS,
  type View,
} from "./grammar.ts";
import { type KnownAttributes, MAX_LAYERS, parseView } from "./parse-view.ts";

const KNOWN: KnownAttributes = {
  names: [
    "node",
    "partition",
    "node_partitions",
    "workload",
    "user",
    "project",
    "resource_type",
    "waits_for",
    "unit_state",
  ],
  numbers: ["gpu_util_ratio", "gpus_requested", "power_watts", "wait_s"],
};

const limit = fc.option(fc.integer({ min: 1, max: 1000 }));
const order = fc.constantFrom(...SORT_ORDERS);
const number = fc.constantFrom(...KNOWN.numbers);
const name = fc.constantFrom(...KNOWN.names);
const layers: fc.Arbitrary<Layer> = fc.record({
  by: fc.oneof(
    name,
    number,
    fc.record({ metric: number, bins: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.constant([1, 2.5])) }),
  ),
  layout: fc.constantFrom(...LAYOUT_KINDS),
  size: fc.constantFrom(...GROUP_SIZES),
  sort: fc.oneof(
    fc.record({ by: fc.constantFrom("name" as const, "count" as const), order, of: fc.constant(null) }),
    fc.record({ by: fc.constant("value" as const), order, of: number }),
  ),
  label: fc.boolean(),
  padding: fc.option(fc.double({ min: 0, max: 100, noNaN: true }).map((value) => value + 0)),
  aspect: fc.double({ min: 0.05, max: 20, noNaN: true }),
  limit,
});
const marks: fc.Arbitrary<Mark> = fc.record({
  layout: fc.constantFrom(...LAYOUT_KINDS),
  sort: fc.option(fc.record({ by: fc.oneof(name, number), order })),
  padding: fc.double({ min: 0, max: 100, noNaN: true }).map((value) => value + 0),
  limit,
  from: fc.constantFrom(...UNIT_ORIGINS),
  color: fc.option(fc.oneof(name, number)),
});
const views: fc.Arbitrary<View> = fc.record({
  units: fc.constantFrom(...SHOWN_UNITS),
  filtered: fc.constantFrom(...FILTERED_MODES),
  layers: fc.array(layers, { maxLength: MAX_LAYERS }),
  mark: marks,
});

describe("a view document", () => {
  it("is read back as it was written", () => {
    fc.assert(
      fc.property(views, (view) => {
        expect(parseView(serializeView(view), KNOWN)).toEqual({ view, leftOut: [] });
      }),
    );
  });

  it("is short: defaults are left out", () => {
    expect(serializeView(DEFAULT_VIEW)).toBe('{"version":1,"layers":[]}');
    const view: View = { ...DEFAULT_VIEW, layers: [makeLayer("node", { label: false, size: "uniform" })] };
    expect(serializeView(view)).toBe('{"version":1,"layers":[{"by":"node","size":"uniform","label":false}]}');
  });

  it("is the same text whatever the order its fields were written in", () => {
    const parsed = parseView(
      { layers: [{ layout: "listX", by: "node", sort: { order: "descending", by: "count" } }] },
      KNOWN,
    );
    const other = parseView(
      { layers: [{ sort: { by: "count", order: "descending" }, by: "node", layout: "listX" }] },
      KNOWN,
    );
    expect(serializeView(parsed.view)).toBe(serializeView(other.view));
  });
});

describe("parseView", () => {
  it("opens with what is valid and says what it left out", () => {
    const { view, leftOut } = parseView(
      {
        version: 1,
        layers: [
          { by: "partition", layout: "spiral", size: "count" },
          { by: "gpu_color" },
          { by: { metric: "karma", bins: 4 } },
          { by: { metric: "power_watts", bins: [3, 2] }, padding: -1 },
          "node",
          { by: "user", sort: { by: "value" }, frame: true },
        ],
        mark: { color: "mood", sort: { by: "node", order: "upwards" } },
      },
      KNOWN,
    );
    expect(view.layers.map((layer) => layer.by)).toEqual(["partition", { metric: "power_watts", bins: 5 }, "user"]);
    expect(view.mark.sort).toEqual({ by: "node", order: "ascending" });
    expect(leftOut).toEqual([
      "Layer 1 has layout “spiral”, which is invalid; it was ignored.",
      "Layer 2 groups by “gpu_color”, which units do not have; it was ignored.",
      "Layer 3 groups by the metric “karma”, which units do not have; it was ignored.",
      "Layer 4 has bins “[3,2]”, which are invalid; it uses 5 bins.",
      "Layer 4 has padding “-1”, which is invalid; it was ignored.",
      "Layer 5 is not a layer; it was ignored.",
      "Layer 6 sorts by a value but names no metric; it is sorted by name.",
      "Layer 6 has a setting “frame”, which is invalid; it was ignored.",
      "The unit mark's sort has order “upwards”, which is invalid; it was ignored.",
      "The unit mark has color “mood”, which is invalid; it was ignored.",
    ]);
  });

  it("says so when the document is newer, too deep, or no view at all", () => {
    expect(parseView({ version: 2, layers: [{ by: "node" }] }, KNOWN).leftOut).toEqual([
      "The view was made by a newer version of ClusterScape; unknown settings were ignored.",
    ]);
    const deep = parseView({ layers: Array.from({ length: 12 }, () => ({ by: "node" })) }, KNOWN);
    expect(deep.view.layers).toHaveLength(MAX_LAYERS);
    expect(deep.leftOut).toEqual(["A view has at most 8 layers; the innermost ones were ignored."]);
    for (const nonsense of ["{", "[]", null, 7, [], undefined]) {
      expect(parseView(nonsense, KNOWN)).toEqual({
        view: DEFAULT_VIEW,
        leftOut: ["This is not a view; all units are shown without groups."],
      });
    }
  });

  it("quotes long nonsense shortly", () => {
    const { leftOut } = parseView({ layers: [{ by: "🦑".repeat(200) }] }, KNOWN);
    expect(leftOut[0]?.length).toBeLessThan(250);
    expect(leftOut[0]).toContain("🦑…”");
  });

  it("gives a valid view for any JSON", () => {
    const field = fc.constantFrom(
      "version",
      "units",
      "filtered",
      "layers",
      "mark",
      "by",
      "sort",
      "layout",
      "__proto__",
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ depthSize: "small" }, fc.jsonValue(), fc.array(tie("tree")), fc.dictionary(field, tie("tree"))),
    }));
    fc.assert(
      fc.property(tree, (document) => {
        const { view } = parseView(document, KNOWN);
        expect(parseView(serializeView(view), KNOWN)).toEqual({ view, leftOut: [] });
      }),
    );
  });
});

describe("built-in views", () => {
  it("are valid documents", () => {
    for (const { view } of BUILTIN_VIEWS) expect(parseView(serializeView(view), KNOWN)).toEqual({ view, leftOut: [] });
  });

  it("have keys of their own", () => {
    expect(new Set(BUILTIN_VIEWS.map(({ key }) => key)).size).toBe(4);
  });
});
