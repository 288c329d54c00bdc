import { describe, expect, it } from "vitest";
import { DEFAULT_VIEW, makeLayer } from "../../../layout/grammar.ts";
import { layoutUnits, type UnitLayout } from "../../../layout/layout.ts";
import { makeNames } from "../../../layout/synthetic-units.ts";
import { startGroupFlight } from "./group-flight.ts";

function layoutOf(names: readonly string[], by = "project"): UnitLayout {
  const view = { ...DEFAULT_VIEW, layers: [makeLayer(by, { layout: "listX" })] };
  const columns = { rowCount: names.length, attributes: new Map([[by, makeNames(names)]]) };
  return layoutUnits({ view, columns, filtered: null, space: { width: 800, height: 400 } });
}

describe("a flight of groups", () => {
  const before = layoutOf(["b", "c", "c"]);
  const after = layoutOf(["a", "a", "a", "a", "b", "c", "c"]);

  it("starts where groups were, ends where they will be, and new ones are there at once", () => {
    const flight = startGroupFlight(before, after);
    expect(flight?.layout.groups.x[2]).toBe(before.groups.x[1]);
    expect(flight?.layout.groups.x[1]).toBe(after.groups.x[1]);
    flight?.moveTo(0.5);
    expect(flight?.layout.groups.x[2]).toBeCloseTo(((before.groups.x[1] ?? 0) + (after.groups.x[2] ?? 0)) / 2);
    flight?.moveTo(1);
    expect([...(flight?.layout.groups.x ?? [])]).toEqual([...after.groups.x]);
    expect([...(flight?.layout.groups.width ?? [])]).toEqual([...after.groups.width]);
  });

  it("does not take place between groups of other things", () => {
    expect(startGroupFlight(layoutOf(["b", "c"], "user"), after)).toBeNull();
  });

  it("leaves both layouts as they are", () => {
    const x = [...after.groups.x];
    startGroupFlight(before, after)?.moveTo(0.3);
    expect([...after.groups.x]).toEqual(x);
  });
});
