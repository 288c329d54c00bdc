import { describe, expect, it } from "vitest";
import { aggregateBy, groupRows } from "./aggregate.ts";
import { computeBands } from "./bands.ts";

const groups = { codes: Uint32Array.of(1, 1, 2, 0, 2), names: [null, "a", "b", "unused"] };

describe("aggregateBy", () => {
  it("leaves out units without a sample and units of nobody", () => {
    const result = aggregateBy(groups, Float32Array.of(0.25, 0.75, Number.NaN, 1, 0.5));
    expect([...result.keys()]).toEqual(["a", "b"]);
    expect(result.get("a")).toEqual({ sampled: 2, sum: 1, mean: 0.5, min: 0.25, max: 0.75 });
    expect(result.get("b")).toMatchObject({ sampled: 1, mean: 0.5 });
  });

  it("knows nothing where nothing was measured", () => expect(aggregateBy(groups, null).size).toBe(0));
});

describe("groupRows", () => {
  it("lists the rows of each name", () => {
    expect([...groupRows(groups)]).toEqual([
      ["a", [0, 1]],
      ["b", [2, 4]],
    ]);
  });
});

describe("computeBands", () => {
  const line = (unit: string, times: number[], values: number[]) => ({
    metric: "power_watts",
    unit,
    timesMs: Float64Array.from(times),
    values: Float64Array.from(values),
    minima: Float64Array.from(values, (value) => value - 1),
    maxima: Float64Array.from(values, (value) => value + 1),
  });

  it("spans all units at each instant, also where some have no sample", () => {
    const [band] = computeBands([line("a", [1, 2], [10, 20]), line("b", [2, 3], [40, 50])]);
    expect(band).toMatchObject({ metric: "power_watts", units: 2 });
    expect([...(band?.timesMs ?? [])]).toEqual([1, 2, 3]);
    expect([...(band?.means ?? [])]).toEqual([10, 30, 50]);
    expect([...(band?.minima ?? [])]).toEqual([9, 19, 49]);
    expect([...(band?.maxima ?? [])]).toEqual([11, 41, 51]);
  });
});
