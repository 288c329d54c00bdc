import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HOUR_MS } from "../../base/durations.ts";
import { drawBars, findStep, listLabels, toMoment, toX } from "./time-scale.ts";

const DAY = { startMs: 100 * 24 * HOUR_MS, endMs: 101 * 24 * HOUR_MS, width: 960 };

describe("places on the time bar", () => {
  it("lead to whole minutes and back", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1440 }), (minute) => {
        const at = DAY.startMs + minute * 60_000;
        expect(toMoment(DAY, toX(DAY, at) + 0.01)).toBe(at);
      }),
    );
  });

  it("never lead beyond its ends", () => {
    expect(toMoment(DAY, -50)).toBe(DAY.startMs);
    expect(toMoment(DAY, 5000)).toBe(DAY.endMs);
    expect(toMoment({ ...DAY, width: 0 }, 10)).toBe(DAY.endMs);
  });

  it("find the step they are in", () => {
    expect(findStep([], 60_000, 5)).toBeNull();
    expect(findStep([0, 60_000, 120_000], 60_000, 119_999)).toBe(1);
    expect(findStep([0, 60_000, 120_000], 60_000, 10 ** 9)).toBe(2);
  });
});

describe("labels", () => {
  it("stand at round local times, midnight marked", () => {
    const labels = listLabels(DAY, 2 * HOUR_MS);
    expect(labels.length).toBeGreaterThan(5);
    for (const { atMs } of labels) expect((atMs + 2 * HOUR_MS) % HOUR_MS).toBe(0);
    expect(labels.filter(({ isDay }) => isDay)).toHaveLength(1);
  });

  it("never crowd, however long the time is", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 * 24 * 30 }), fc.integer({ min: 100, max: 2000 }), (minutes, width) => {
        const scale = { startMs: 0, endMs: minutes * 60_000, width };
        const places = listLabels(scale, 0).map(({ atMs }) => toX(scale, atMs));
        for (let index = 1; index < places.length; index += 1) {
          expect((places[index] ?? 0) - (places[index - 1] ?? 0)).toBeGreaterThanOrEqual(74 - 1e-6);
        }
      }),
    );
  });
});

describe("bars", () => {
  it("stand on the ground and leave out nothing but nothing", () => {
    expect(drawBars({ startMs: 0, endMs: 100, width: 100 }, [0, 50], 50, [0.5, 0], 10)).toBe("M0 10V5H49V10Z");
  });
});
