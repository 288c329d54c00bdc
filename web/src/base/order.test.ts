import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { computeOrder } from "./order.ts";

describe("computeOrder", () => {
  it("counts as people do", () => {
    const names = ["gpu-10", "gpu-9", "gpu-1"];
    expect(Array.from(computeOrder(names, false), (index) => names[index])).toEqual(["gpu-1", "gpu-9", "gpu-10"]);
  });

  it("puts the missing last in both directions", () => {
    expect([...computeOrder([null, 2, null, 1], false)]).toEqual([3, 1, 0, 2]);
    expect([...computeOrder([null, 2, null, 1], true)]).toEqual([1, 3, 0, 2]);
  });

  it("has every row once, in order, and leaves equals as they were", () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.integer({ min: 0, max: 5 }))), fc.boolean(), (keys, descending) => {
        const order = [...computeOrder(keys, descending)];
        expect(order.toSorted((a, b) => a - b)).toEqual(keys.map((_, index) => index));
        for (let at = 1; at < order.length; at += 1) {
          const [a = 0, b = 0] = [order[at - 1], order[at]];
          const [x, y] = [keys[a] ?? null, keys[b] ?? null];
          if (x === y) expect(a).toBeLessThan(b);
          else if (y !== null) expect(x !== null && (descending ? x > y : x < y)).toBe(true);
        }
      }),
    );
  });
});
