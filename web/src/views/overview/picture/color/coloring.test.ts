import { describe, expect, it } from "vitest";
import type { NameColumn } from "../../../../api/columns.ts";
import type { Snapshot } from "../../../../api/snapshot.ts";
import type { Units } from "../../../../data/units.ts";
import { SHAPES } from "../../../../layers/squares/marks.ts";
import { COLOR_NAMES, type ColorName } from "../../../../state/screen.ts";
import type { Tokens } from "../tokens.ts";
import { computeColoring } from "./coloring.ts";
import { nameColor } from "./name-color.ts";

const tokens: Tokens = { bg: 0, panel: 1, raised: 2, line: 3, text: 4, muted: 5, faint: 6, accent: 7, bad: 8 };
const STATES = ["allocated", "allocated", "free", "unavailable", "stale", "requested", "allocated"];
const USERS = ["ada", "bob", null, null, null, "ada", "ada"];
const UTIL = [0, 1, 0, 0.4, Number.NaN, Number.NaN, Number.NaN];
const NOW = 100_000;

function toNames(values: readonly (string | null)[]): NameColumn {
  const names = [null, ...new Set(values.filter((value) => value !== null))];
  return { codes: Uint32Array.from(values, (value) => names.indexOf(value)), names };
}

function makeUnits(): Units {
  const none = toNames(STATES.map(() => null));
  const submitted = STATES.map((state) => (state === "requested" ? NOW - 60_000 : Number.NaN));
  const snapshot: Snapshot = {
    inventoryVersion: 1,
    rowCount: STATES.length,
    names: (column) => (column === "unit_state" ? toNames(STATES) : column === "user" ? toNames(USERS) : none),
    numbers: (column) => Float64Array.from(column === "submitted_at" ? submitted : STATES.map(() => Number.NaN)),
  };
  const find = (metric: string) => (metric === "gpu_util_ratio" ? Float32Array.from(UTIL) : null);
  return {
    snapshot,
    tick: { inventoryVersion: 1, tickVersion: 1, sampledAt: NOW, rowCount: STATES.length, find },
  };
}

function colorUnits(color: ColorName, filtered: Uint8Array | null = null) {
  const drawn = new Uint8Array(STATES.length).fill(1);
  return computeColoring({ units: makeUnits(), color, filtered, drawn, tokens });
}

describe("coloring by a metric", () => {
  it("gives every kind of absence a shape of its own", () => {
    const { marks, states } = colorUnits("gpu_util_ratio");
    const { filled, free, stale, requested, missing } = SHAPES;
    expect([...marks.shape]).toEqual([filled, filled, free, filled, stale, requested, missing]);
    expect(marks.color[3]).toBe(tokens.bad);
    expect(states).toEqual({ allocated: 3, free: 1, unavailable: 1, stale: 1, requested: 1 });
  });

  it("goes from one end of the ramp to the other and counts what is held", () => {
    const { marks, legend } = colorUnits("gpu_util_ratio");
    expect([marks.color[0], marks.color[1]]).toEqual([0x440154, 0xfde725]);
    expect(legend).toMatchObject({ kind: "quantity", min: 0, max: 1, sampled: 2 });
    expect(legend.kind === "quantity" && [legend.bins[0], legend.bins.at(-1)]).toEqual([1, 1]);
  });

  it("shows how long requested GPUs have been waited for", () => {
    const { marks, legend } = colorUnits("wait_s");
    expect(marks.shape[5]).toBe(SHAPES.requestedValue);
    expect(legend).toMatchObject({ min: 0, max: 60, sampled: 1 });
  });

  it("says that there are no values where none were sampled", () => {
    const { marks, legend } = colorUnits("power_watts");
    expect(marks.shape[0]).toBe(SHAPES.missing);
    expect(legend).toMatchObject({ sampled: 0, min: 0, max: 0 });
  });

  it("fades what the filters leave out and does not count it", () => {
    const { marks, legend } = colorUnits("gpu_util_ratio", Uint8Array.of(1, 0, 0, 0, 0, 0, 0));
    expect(marks.opacity[0]).toBeLessThan(0.2);
    expect(marks.opacity[1]).toBe(1);
    expect(legend).toMatchObject({ sampled: 1 });
  });
});

describe("coloring by a name", () => {
  it("gives a name the same color everywhere and lists the largest first", () => {
    const { marks, legend } = colorUnits("user");
    expect(marks.color[0]).toBe(nameColor("ada"));
    expect(marks.color[6]).toBe(marks.color[0]);
    expect(marks.color[1]).not.toBe(marks.color[0]);
    expect(legend.kind === "category" && legend.entries.map(({ key, count }) => [key, count])).toEqual([
      ["ada", 3],
      ["bob", 1],
    ]);
  });

  it("never looks like out of service", () => {
    const reds = Array.from({ length: 500 }, (_, index) => nameColor(`user-${index}`)).filter((color) => {
      const [red, green, blue] = [color >> 16, (color >> 8) & 255, color & 255];
      return red > 190 && green < 125 && blue > 90 && blue < 170;
    });
    expect(reds).toEqual([]);
  });

  it("spreads names over many colors", () => {
    const colors = new Set(Array.from({ length: 60 }, (_, index) => nameColor(`project-${index}`)));
    expect(colors.size).toBeGreaterThan(30);
  });

  it("works for every choice there is", () => {
    for (const color of COLOR_NAMES) expect(colorUnits(color).marks.color.length).toBe(STATES.length);
  });
});
