import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BUILTIN_VIEWS } from "../../../layout/builtin-views.ts";
import { DEFAULT_VIEW, makeLayer, serializeView, type View } from "../../../layout/grammar.ts";
import { MAX_LAYERS, parseView } from "../../../layout/parse-view.ts";
import { LAYOUT_ATTRIBUTES } from "../../../state/picture.ts";
import {
  addLayer,
  canAddLayer,
  changeLayer,
  changeMark,
  groupBy,
  moveLayer,
  NO_IDS,
  nameLayers,
  parseLimits,
  removeLayer,
} from "./edit.ts";
import { describeLayer, describeMark, describePath } from "./words.ts";

const view: View = { ...DEFAULT_VIEW, layers: ["partition", "project", "workload"].map((by) => makeLayer(by)) };
const attributes = ({ layers }: View) => layers.map(({ by }) => (typeof by === "string" ? by : by.metric));

describe("layers", () => {
  it("are added innermost, numbers in bins and counts one by one", () => {
    expect(attributes(addLayer(view, "node"))).toEqual(["partition", "project", "workload", "node"]);
    expect(addLayer(view, "power_watts").layers.at(-1)?.by).toEqual({ metric: "power_watts", bins: 5 });
    expect(groupBy("restarts")).toBe("restarts");
    expect(groupBy("xid_error_code")).toEqual({ metric: "xid_error_code", bins: 5 });
  });

  it("are no more than a view may have", () => {
    let full = view;
    for (let times = 0; times < 20; times += 1) full = addLayer(full, "node");
    expect(full.layers).toHaveLength(MAX_LAYERS);
    expect(canAddLayer(full)).toBe(false);
    expect(addLayer(full, "node")).toBe(full);
  });

  it("are moved and removed by their place", () => {
    expect(attributes(moveLayer(view, 2, 0))).toEqual(["workload", "partition", "project"]);
    expect(attributes(moveLayer(view, 0, 1))).toEqual(["project", "partition", "workload"]);
    expect(moveLayer(view, 0, -1)).toBe(view);
    expect(moveLayer(view, 2, 3)).toBe(view);
    expect(attributes(removeLayer(view, 1))).toEqual(["partition", "workload"]);
  });

  it("and the mark are changed without changing others", () => {
    const changed = changeMark(changeLayer(view, 1, { size: "uniform" }), { from: "bottom" });
    expect(changed.layers.map(({ size }) => size)).toEqual(["count", "uniform", "count"]);
    expect(changed.mark.from).toBe("bottom");
    expect(view.mark.from).toBe("top");
  });

  it("stay a valid document whatever is done to them", () => {
    const place = fc.nat(9);
    const every = fc.constantFrom(...LAYOUT_ATTRIBUTES.names, ...LAYOUT_ATTRIBUTES.numbers);
    const edits: fc.Arbitrary<(view: View) => View> = fc.oneof(
      every.map((attribute) => (before: View) => addLayer(before, attribute)),
      place.map((at) => (before: View) => removeLayer(before, at)),
      fc.tuple(place, place).map(
        ([from, to]) =>
          (before: View) =>
            moveLayer(before, from, to),
      ),
    );
    fc.assert(
      fc.property(fc.constantFrom(...BUILTIN_VIEWS), fc.array(edits, { maxLength: 20 }), (builtin, list) => {
        const edited = list.reduce((before, edit) => edit(before), builtin.view);
        expect(parseView(serializeView(edited), LAYOUT_ATTRIBUTES)).toEqual({ view: edited, leftOut: [] });
      }),
    );
  });
});

describe("names of layers", () => {
  const first = nameLayers(view, NO_IDS);

  it("go with them when they change places", () => {
    const moved = nameLayers(moveLayer(view, 2, 0), first);
    expect(moved.ids).toEqual([first.ids[2], first.ids[0], first.ids[1]]);
  });

  it("stay when a layer gets another attribute, so that its settings stay open", () => {
    const changed = changeLayer(view, 1, { by: "user" });
    expect(nameLayers(changed, first).ids).toEqual(first.ids);
  });

  it("are never given twice", () => {
    const lists = fc.array(fc.array(fc.constantFrom("node", "user", "project"), { maxLength: 6 }));
    fc.assert(
      fc.property(lists, (steps) => {
        let ids = NO_IDS;
        for (const step of steps) {
          ids = nameLayers({ ...DEFAULT_VIEW, layers: step.map((by) => makeLayer(by)) }, ids);
          expect(ids.ids).toHaveLength(step.length);
          expect(new Set(ids.ids).size).toBe(step.length);
        }
      }),
    );
  });
});

describe("limits of bins", () => {
  it("are rising numbers, written as one likes", () => {
    expect(parseLimits("0.2, 0.5;0.8 1")).toEqual([0.2, 0.5, 0.8, 1]);
    expect(parseLimits("-5")).toEqual([-5]);
    for (const nonsense of ["", "a", "2 1", "1 1", "1,,x"]) expect(parseLimits(nonsense)).toBeNull();
  });
});

describe("a view in words", () => {
  it("says what is grouped by what and how", () => {
    expect(describePath(view)).toBe("Partition › Project › Workload");
    expect(describePath(DEFAULT_VIEW)).toBe("no groups");
    expect(describeLayer(makeLayer("partition", { layout: "listX" }))).toBe("list → · by count");
    expect(describeLayer(makeLayer({ metric: "power_watts", bins: [100, 300] }, { size: "uniform" }))).toBe(
      "pack · uniform · 3 bins",
    );
    const sorted = changeMark(view, { layout: "fillY", sort: { by: "gpu_util_ratio", order: "descending" } });
    expect(describeMark(sorted)).toBe("squares, fill ↓ · GPU utilization ↓");
  });
});
