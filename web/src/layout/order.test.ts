import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareWords, computeOrder } from "../base/order.ts";
import { compareNames } from "./name-order.ts";
import { orderNumbers } from "./number-order.ts";

describe("compareNames", () => {
  const plain = fc.string({ unit: "grapheme-ascii" });
  const nodeLike = fc.string({ unit: fc.constantFrom("a", "B", "b", "0", "1", "9", "-", "_", ":", ".") });
  const any = fc.string({ unit: "grapheme" });

  it("orders as the rest of the client does", () => {
    fc.assert(
      fc.property(fc.oneof(plain, nodeLike, any), fc.oneof(plain, nodeLike, any), (a, b) => {
        expect(Math.sign(compareNames(a, b))).toBe(Math.sign(compareWords(a, b)));
      }),
      { numRuns: 2000 },
    );
  });

  it("counts as people do, also in numbers too long for a number", () => {
    const names = ["gpu-10", "gpu-9", `gpu-${"9".repeat(40)}`, `gpu-1${"0".repeat(40)}`, "GPU-9b"];
    expect(names.toSorted(compareNames)).toEqual([
      "gpu-9",
      "GPU-9b",
      "gpu-10",
      `gpu-${"9".repeat(40)}`,
      `gpu-1${"0".repeat(40)}`,
    ]);
  });
});

describe("orderNumbers", () => {
  it("orders as the rest of the client does", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.double(), fc.integer({ min: -3, max: 3 }))),
        fc.boolean(),
        (values, descending) => {
          const keys = values.map((value) => (Number.isNaN(value) ? null : value));
          expect([...orderNumbers(Float64Array.from(values), descending)]).toEqual([...computeOrder(keys, descending)]);
        },
      ),
    );
  });
});
