import { describe, expect, it } from "vitest";
import type { NameColumn } from "../../../../api/columns.ts";
import type { Snapshot } from "../../../../api/snapshot.ts";
import type { Units } from "../../../../data/units.ts";
import { SHAPES } from "../../../../layers/squares/marks.ts";
import { ATTRIBUTES, type AttributeName, attributeOf } from "../../../../state/attributes.ts";
import { type ColorSettings, DEFAULT_COLORS, NUMBER_SCHEMES } from "../../../../state/color.ts";
import { formatEnds } from "../../filter/number-words.ts";
import type { Tokens } from "../tokens.ts";
import { computeColoring, highlightMarks, type NameLegend, type NumberLegend } from "./coloring.ts";

const tokens: Tokens = { bg: 0, panel: 1, raised: 2, line: 3, text: 4, muted: 5, faint: 6, accent: 7, bad: 8 };
const STATES = ["allocated", "allocated", "free", "unavailable", "stale", "requested", "allocated"];
const USERS = ["ada", "bob", null, null, null, "ada", "ada"];
const UTIL = [0, 1, 0, 0.4, Number.NaN, Number.NaN, Number.NaN];
const NOW = 100_000;

function toNames(values: readonly (string | null)[]): NameColumn {
  const names = [null, ...new Set(values.filter((value) => value !== null))];
  return { codes: Uint32Array.from(values, (value) => names.indexOf(value)), names };
}

function makeUnits(
  states: readonly string[],
  users: readonly (string | null)[],
  util: readonly number[],
  waitsS: readonly number[] = states.map(() => 60),
): Units {
  const none = toNames(states.map(() => null));
  const submitted = states.map((state, row) => (state === "requested" ? NOW - (waitsS[row] ?? 0) * 1000 : Number.NaN));
  const columns: Readonly<Record<string, NameColumn>> = { unit_state: toNames(states), user: toNames(users) };
  const snapshot: Snapshot = {
    inventoryVersion: 1,
    rowCount: states.length,
    names: (column) => columns[column] ?? none,
    numbers: (column) => Float64Array.from(column === "submitted_at" ? submitted : states.map(() => Number.NaN)),
  };
  const find = (metric: string) => (metric === "gpu_util_ratio" ? Float32Array.from(util) : null);
  return {
    snapshot,
    tick: { inventoryVersion: 1, tickVersion: 1, sampledAt: NOW, rowCount: states.length, find },
  };
}

const UNITS = makeUnits(STATES, USERS, UTIL);

interface Options {
  readonly filtered?: Uint8Array | null;
  readonly settings?: Partial<ColorSettings>;
  readonly units?: Units;
}

function colorUnits(color: AttributeName, { filtered = null, settings = {}, units = UNITS }: Options = {}) {
  const drawn = new Uint8Array(units.snapshot.rowCount).fill(1);
  const attribute = attributeOf(color);
  return computeColoring({ units, attribute, settings: { ...DEFAULT_COLORS, ...settings }, filtered, drawn, tokens });
}

/** Held units with these values of utilization. */
function colorValues(values: readonly number[], settings: Partial<ColorSettings>, filtered: Uint8Array | null = null) {
  const units = makeUnits(
    values.map(() => "allocated"),
    values.map(() => null),
    values,
  );
  const { marks, legend } = colorUnits("gpu_util_ratio", { units, settings, filtered });
  return { colors: [...marks.color], legend: legend as NumberLegend };
}

const LOW = 0x45337d;
const HIGH = 0xfde725;

describe("coloring by a metric", () => {
  it("gives every kind of absence a shape of its own", () => {
    const { marks, states } = colorUnits("gpu_util_ratio");
    const { filled, free, stale, requested, missing, out } = SHAPES;
    expect([...marks.shape]).toEqual([filled, filled, free, out, stale, requested, missing]);
    expect(marks.color[3]).toBe(tokens.bad);
    expect(states).toEqual({ allocated: 3, free: 1, unavailable: 1, stale: 1, requested: 1 });
  });

  it("goes from one end of the ramp to the other and counts what is held", () => {
    const { marks, legend } = colorUnits("gpu_util_ratio");
    expect([marks.color[0], marks.color[1]]).toEqual([LOW, HIGH]);
    expect(legend).toMatchObject({ kind: "number", histogram: { allCount: 2, keptCount: 2 } });
    const { axis, all } = (legend as NumberLegend).histogram;
    expect(axis).toEqual({ kind: "linear", min: 0, max: 1 });
    expect([all[0], all.at(-1)]).toEqual([1, 1]);
  });

  it("crosses out what is out of service, whatever the others are colored by", () => {
    for (const color of ["gpu_util_ratio", "user", "unit_state"] as const) {
      const { marks } = colorUnits(color);
      expect([marks.shape[3], marks.color[3]]).toEqual([SHAPES.out, tokens.bad]);
    }
  });

  it("shows how long requested GPUs have been waited for", () => {
    const { marks, legend } = colorUnits("wait_s");
    expect(marks.shape[5]).toBe(SHAPES.requestedValue);
    expect((legend as NumberLegend).histogram).toMatchObject({ axis: { min: 0, max: 60 }, allCount: 1 });
  });

  it("says that there are no values where none were sampled", () => {
    for (const color of ["power_watts", "gpu_util_ratio:p50"] as const) {
      const { marks, legend } = colorUnits(color);
      expect(marks.shape[0]).toBe(SHAPES.missing);
      expect((legend as NumberLegend).histogram.allCount).toBe(0);
    }
  });

  it("fades what the filters leave out, and counts it apart", () => {
    const { marks, legend, drawn, matching } = colorUnits("gpu_util_ratio", {
      filtered: Uint8Array.of(1, 0, 0, 0, 0, 0, 0),
    });
    expect(marks.opacity[0]).toBeLessThan(0.2);
    expect(marks.opacity[1]).toBe(1);
    expect((legend as NumberLegend).histogram).toMatchObject({ allCount: 2, keptCount: 1 });
    expect([drawn, matching]).toEqual([7, 6]);
  });
});

describe("scales", () => {
  it("keep the ends that somebody set and clamp what is beyond", () => {
    const { colors, legend } = colorValues([0.1, 0.2, 0.4, 0.9], { min: 0.2, max: 0.4 });
    expect(colors).toEqual([LOW, LOW, HIGH, HIGH]);
    expect(legend.histogram.axis).toMatchObject({ min: 0.2, max: 0.4 });
  });

  it("remap to what the filters let through", () => {
    const values = [0, 0.25, 0.5, 1];
    const filtered = Uint8Array.of(1, 0, 0, 1);
    expect(colorValues(values, { isRemapped: true }, filtered).colors).toEqual([LOW, LOW, HIGH, HIGH]);
    expect(colorValues(values, {}, filtered).colors.slice(0, 1)).toEqual([LOW]);
    expect(colorValues(values, {}, filtered).colors[2]).not.toBe(HIGH);
  });

  it("in logarithms begin at the least value above nothing", () => {
    const { colors, legend } = colorValues([0, 0.01, 0.1, 1], { scale: { kind: "log", bins: 5 } });
    expect(legend.histogram.axis.kind).toBe("log");
    expect(legend.histogram.axis.min).toBeCloseTo(0.01);
    expect([colors[0], colors[1], colors[3]]).toEqual([LOW, LOW, HIGH]);
    expect(colors[2]).not.toBe(LOW);
  });

  it("in logarithms stay even where nothing is above nothing", () => {
    const { legend } = colorValues([0, 0], { isRemapped: true, scale: { kind: "log", bins: 5 } });
    expect(legend.histogram.axis).toEqual({ kind: "linear", min: 0, max: 0 });
  });

  it("by rank give every color as many units, however the values lie", () => {
    const values = Array.from({ length: 640 }, (_, index) => (index / 640) ** 6);
    const { colors } = colorValues(values, { scale: { kind: "quantile", bins: 5 } });
    const counts = new Map<number, number>();
    for (const color of colors) counts.set(color, (counts.get(color) ?? 0) + 1);
    expect(counts.size).toBe(64);
    expect(Math.max(...counts.values())).toBeLessThanOrEqual(11);
  });

  it("in steps have as many colors as steps", () => {
    const values = Array.from({ length: 100 }, (_, index) => index / 99);
    const { colors, legend } = colorValues(values, { scale: { kind: "quantize", bins: 4 } });
    expect(new Set(colors).size).toBe(4);
    expect(new Set(legend.ramp).size).toBe(4);
    expect([colors[0], colors[99]]).toEqual([LOW, HIGH]);
  });

  it("can be turned round", () => {
    expect(colorValues([0, 1], { isReversed: true }).colors).toEqual([HIGH, LOW]);
  });

  it("rise in lightness in every scheme", () => {
    const lightness = (color: number) => 0.299 * (color >> 16) + 0.587 * ((color >> 8) & 255) + 0.114 * (color & 255);
    const values = Array.from({ length: 9 }, (_, index) => index / 8);
    for (const scheme of NUMBER_SCHEMES) {
      const rising = colorValues(values, { scheme }).colors.map(lightness);
      expect(rising).toEqual(rising.toSorted((a, b) => a - b));
    }
  });

  it("have a color where all values are one", () => {
    expect(colorValues([0.5, 0.5], { isRemapped: true }).colors).toEqual([HIGH, HIGH]);
  });
});

describe("the ramp of a duration", () => {
  const colorWaits = (waitsS: readonly number[], settings: Partial<ColorSettings> = {}) => {
    const nobody = waitsS.map(() => null);
    const states = waitsS.map(() => "requested");
    const units = makeUnits(states, nobody, waitsS, waitsS);
    const { legend, marks } = colorUnits("wait_s", { units, settings });
    return { histogram: (legend as NumberLegend).histogram, marks };
  };
  const HOURS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((hours) => hours * 3600);

  it("ends where most values end, and says that one is beyond", () => {
    const { histogram, marks } = colorWaits([...HOURS, ...Array<number>(128).fill(200 * 3600)]);
    expect(histogram.axis.max).toBe(36_000);
    expect(histogram.largest).toBe(720_000);
    const [low, high] = formatEnds(histogram, "seconds");
    expect(low).not.toMatch("<");
    expect(high).toMatch(/^> 10/);
    expect(marks.color[10]).toBe(marks.color[9]);
  });

  it("goes on to the largest where none or many are far out", () => {
    expect(colorWaits(HOURS).histogram.axis.max).toBe(36_000);
    expect(colorWaits([...HOURS, 720_000, 730_000]).histogram.axis.max).toBe(730_000);
    expect(formatEnds(colorWaits(HOURS).histogram, "seconds")[1]).toMatch(/^10/);
  });

  it("goes where somebody set it, and by rank or logarithm to the largest", () => {
    const waits = [...HOURS, 720_000];
    expect(colorWaits(waits, { max: 800_000 }).histogram.axis.max).toBe(800_000);
    expect(colorWaits(waits, { scale: { kind: "log", bins: 5 } }).histogram.axis.max).toBe(720_000);
  });
});

describe("coloring by a name", () => {
  it("gives a name one color and counts its units", () => {
    const { marks, legend } = colorUnits("user", { filtered: Uint8Array.of(1, 0, 0, 0, 0, 0, 0) });
    expect(marks.color[6]).toBe(marks.color[0]);
    expect(marks.color[1]).not.toBe(marks.color[0]);
    const { column, all, kept } = legend as NameLegend;
    expect(column.names).toEqual([null, "ada", "bob"]);
    expect([[...all], [...kept]]).toEqual([
      [3, 3, 1],
      [3, 2, 1],
    ]);
  });

  it("works for every attribute there is", () => {
    for (const { name } of ATTRIBUTES) expect(colorUnits(name).marks.color.length).toBe(STATES.length);
  });
});

describe("what is pointed at in the legend", () => {
  it("stands out without changing the colors", () => {
    const { marks } = colorUnits("user");
    const lit = highlightMarks(UNITS, marks, { kind: "name", attribute: "user", name: "ada" });
    expect(lit.color).toBe(marks.color);
    expect([...lit.opacity].map((opacity) => opacity === 1)).toEqual([true, false, false, false, false, true, true]);
    expect(highlightMarks(UNITS, marks, null)).toBe(marks);
  });

  it("may be a part of the ramp", () => {
    const { marks } = colorUnits("gpu_util_ratio");
    const attribute = attributeOf("gpu_util_ratio");
    if (attribute.kind !== "number") throw new Error("not a number");
    const lit = highlightMarks(UNITS, marks, { kind: "range", attribute, min: 0.9, max: Number.POSITIVE_INFINITY });
    expect([...lit.opacity].filter((opacity) => opacity === 1)).toHaveLength(1);
  });
});
