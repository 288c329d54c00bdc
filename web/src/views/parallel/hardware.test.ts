import { describe, expect, it } from "vitest";
import { formatNearest } from "./hardware.tsx";

function line(times: readonly number[], values: readonly number[]) {
  return { unit: "gpu-0:0", timesMs: Float64Array.from(times), values: Float64Array.from(values) };
}

describe("the value of GPUs at a time", () => {
  it("is the nearest sample", () => {
    expect(formatNearest([line([0, 100, 200], [10, 20, 30])], 140, "watts")).toBe("20\u00a0W");
  });

  it("is the minimum and maximum of several GPUs", () => {
    const lines = [line([0], [0.25]), line([0], [0.75])];
    expect(formatNearest(lines, 0, "ratio")).toBe("25\u00a0% to 75\u00a0%");
  });

  it("is empty without samples", () => {
    expect(formatNearest([line([], []), line([0], [Number.NaN])], 0, "ratio")).toBe("");
  });
});
