import { describe, expect, it } from "vitest";
import { parseWhere } from "../../../state/where.ts";
import { describeClause } from "./condition-words.ts";
import { makeAxis, placeOn, valueOn } from "./histogram.ts";
import { fromTyped, rangeBetween, toTyped } from "./number-words.ts";
import { listTopNames } from "./top-names.ts";

const describeText = (text: string) => describeClause(parseWhere([text], [])[0] ?? []).replaceAll("\u00a0", " ");

describe("a condition in words", () => {
  it.each([
    ["gpu_util_ratio:..0.15", "GPU utilization up to 15 %"],
    ["!power_watts:p95:300..", "Power, p95 of life not from 300 W"],
    ["user:ada,bob,cid,dan,eve", "User ada, bob, cid and 2 more"],
    ["workload_state:out_of_memory", "Workload's state out of memory"],
    ["project:~|node~gpu-1", "Project none or Node with “gpu-1”"],
  ])("%s", (text, words) => {
    expect(describeText(text)).toBe(words);
  });
});

describe("a drawn range", () => {
  const axis = makeAxis("linear", 0, 1, 0.001);

  it("has round numbers, and no limit where the axis ends", () => {
    expect(rangeBetween(axis, 0, 0.1512)).toEqual({ min: null, max: 0.15 });
    expect(rangeBetween(axis, 0.2004, 1)).toEqual({ min: 0.2, max: null });
    expect(rangeBetween(axis, 0, 1)).toBeNull();
  });

  it("comes back to its place", () => {
    for (const kind of ["linear", "log"] as const) {
      const some = makeAxis(kind, 2, 2000, 2);
      for (const place of [0, 0.25, 0.5, 1]) expect(placeOn(some, valueOn(some, place))).toBeCloseTo(place);
    }
  });

  it("is typed in the unit people use", () => {
    expect(toTyped(0.07, "ratio")).toBe(7);
    expect(fromTyped(7, "ratio")).toBe(0.07);
    expect(toTyped(2 ** 31, "bytes")).toBe(2);
  });
});

describe("the names to list", () => {
  const names = [null, "a", "b", "c", "d"];
  const counts = Uint32Array.of(2, 1, 9, 0, 5);

  it("are the most frequent, with the rest counted", () => {
    const top = listTopNames({ names, counts, chosen: [], text: "", most: 2 });
    expect(top).toEqual({ codes: [2, 4, 0], distinct: 3, otherNames: 1, otherCount: 1 });
  });

  it("always have what is chosen, and only what is searched for", () => {
    expect(listTopNames({ names, counts, chosen: ["c"], text: "", most: 1 }).codes).toEqual([2, 3, 0]);
    expect(listTopNames({ names, counts, chosen: [], text: "D", most: 1 }).codes).toEqual([4]);
  });

  it("are few of ten thousand", () => {
    const many = [null, ...Array.from({ length: 10_000 }, (_, index) => `n${index}`)];
    const equalCounts = new Uint32Array(many.length).fill(3);
    const top = listTopNames({ names: many, counts: equalCounts, chosen: [], text: "", most: 12 });
    expect(top.codes).toHaveLength(13);
    expect([top.otherNames, top.otherCount]).toEqual([9988, 29_964]);
  });
});
