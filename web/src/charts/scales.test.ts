import { describe, expect, it } from "vitest";
import { findLast, linearScale, listNumbers, listTimes, thinTicks } from "./scales.ts";

describe("labels of an axis", () => {
  it("are round and lie within it", () => {
    expect(listNumbers(0, 100, 5)).toEqual([0, 20, 40, 60, 80, 100]);
    expect(listNumbers(3, 17, 4)).toEqual([5, 10, 15]);
    expect(listNumbers(-1, 1, 4)).toEqual([-1, -0.5, 0, 0.5, 1]);
  });

  it("are one or none where there is no stretch", () => {
    expect(listNumbers(5, 5, 4)).toEqual([5]);
    expect(listNumbers(Number.NaN, 1, 4)).toEqual([]);
  });
});

describe("an axis of time", () => {
  it("has round local times from seconds to days", () => {
    const start = Date.UTC(2026, 10, 15, 9, 0, 7);
    const texts = (length: number, offset = 0) => listTimes(start, start + length, 4, offset).map(({ text }) => text);
    expect(texts(40_000)).toEqual(["09:00:10", "09:00:20", "09:00:30", "09:00:40"]);
    expect(texts(3_600_000)).toEqual(["09:15", "09:30", "09:45", "10:00"]);
    expect(texts(3_600_000, 1_800_000)).toEqual(["09:45", "10:00", "10:15", "10:30"]);
    expect(texts(86_400_000)).toEqual(["12:00", "18:00", "16 Nov", "06:00"]);
    expect(texts(40 * 86_400_000).length).toBeLessThanOrEqual(4);
  });
});

describe("a scale", () => {
  it("has ticks at round multiples of its unit", () => {
    const { ticks } = linearScale(0, 600, 5, (seconds) => `${seconds / 60} min`, 60);
    expect(ticks.map(({ text }) => text)).toEqual(["0 min", "2 min", "4 min", "6 min", "8 min", "10 min"]);
  });

  it("leaves out the labels that would touch the one before", () => {
    const ticks = [0, 1, 2, 3, 4].map((at) => ({ at, text: String(at) }));
    expect(thinTicks(ticks, (value) => value * 10, 20).map(({ at }) => at)).toEqual([0, 2, 4]);
  });

  it("finds the last value up to a place", () => {
    const values = Float64Array.of(1, 2, 2, 5);
    expect([0, 1, 2, 4, 9].map((wanted) => findLast(values, wanted))).toEqual([-1, 0, 2, 2, 3]);
  });
});
