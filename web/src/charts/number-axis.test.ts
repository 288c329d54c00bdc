import { describe, expect, it } from "vitest";
import { listNumbers } from "./number-axis.tsx";

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
