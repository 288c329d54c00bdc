import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { computeLimits, findBin, labelBin } from "./bins.ts";

describe("bins", () => {
  it("lie at round numbers", () => {
    expect(computeLimits([0.013, 0.981], 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(computeLimits([61, 398], 4)).toEqual([0, 100, 200, 300, 400]);
    expect(computeLimits([-7, 12], 4)).toEqual([-10, 0, 10, 20]);
  });

  it("are what the view says, open at both ends", () => {
    const limits = computeLimits([3], [0.5, 0.9]);
    expect([0.1, 0.5, 0.89, 0.9, 7].map((value) => findBin(limits, value))).toEqual([0, 1, 1, 2, 2]);
    expect([0, 1, 2].map((bin) => labelBin(limits[bin] ?? 0, limits[bin + 1] ?? 0))).toEqual([
      "< 0.5",
      "0.5 – 0.9",
      "≥ 0.9",
    ]);
  });

  it("are one where all values are the same, or none is known", () => {
    expect(computeLimits([4, Number.NaN, 4], 5)).toEqual([4, 4]);
    expect(labelBin(4, 4)).toBe("4");
    expect(computeLimits([Number.NaN], 5)).toEqual([0, 0]);
  });

  it("hold every value, and are no more than asked for", () => {
    const value = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 });
    fc.assert(
      fc.property(fc.array(value, { minLength: 1 }), fc.integer({ min: 1, max: 50 }), (values, bins) => {
        const limits = computeLimits(values, bins);
        expect(limits.length - 1).toBeLessThanOrEqual(bins);
        for (const valueInBin of values) {
          const bin = findBin(limits, valueInBin);
          const slack = 1e-9 * Math.max(1, Math.abs(valueInBin));
          expect(limits[bin] ?? Number.NaN).toBeLessThanOrEqual(valueInBin + slack);
          expect(limits[bin + 1] ?? Number.NaN).toBeGreaterThanOrEqual(valueInBin - slack);
        }
      }),
    );
  });
});
