import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { wheres } from "./arbitrary-where.ts";
import {
  findNames,
  findRange,
  namesCondition,
  parseWhere,
  rangeCondition,
  serializeWhere,
  type Where,
  withNames,
  withRange,
} from "./where.ts";

function read(...texts: readonly string[]) {
  const notices: string[] = [];
  return { where: parseWhere(texts, notices), notices };
}

describe("conditions in a link", () => {
  it("come back as they were written", () => {
    fc.assert(
      fc.property(wheres, (where) => {
        expect(read(...serializeWhere(where))).toEqual({ where, notices: [] });
      }),
    );
  });

  it("can be read by people", () => {
    const where: Where = [
      [rangeCondition("gpu_util_ratio", { min: 0, max: 0.15 })],
      [namesCondition("user", ["bob", "alice"], true)],
      [rangeCondition("power_watts:p95", { min: 300, max: null }), namesCondition("project", [null, "a|b"])],
    ];
    expect(serializeWhere(where)).toEqual([
      "gpu_util_ratio:0..0.15",
      "!user:alice,bob",
      "power_watts:p95:300..|project:~,a\\|b",
    ]);
  });

  it.each([
    ["mood:good", "no attribute “mood”"],
    ["gpu_util_ratio:high", "range such as"],
    ["gpu_util_ratio:p51:0..1", "range such as"],
    ["gpu_util_ratio:1..0", "range such as"],
    ["gpu_util_ratio:..", "range such as"],
    ["gpu_util_ratio~5", "range such as"],
    ["user=ada", "a condition needs"],
    ["user:", "a condition needs"],
    ["user", "a condition needs"],
    ["unit_state:asleep", "no state “asleep”"],
    ["", "no attribute"],
  ])("that are invalid are ignored with a notice: %s", (text, why) => {
    const { where, notices } = read(text, "user:ada");
    expect(where).toEqual([[namesCondition("user", ["ada"])]]);
    expect(notices).toEqual([expect.stringContaining(why)]);
  });

  it("keep the alternatives that mean something", () => {
    expect(read("mood:good|user:ada").where).toEqual([[namesCondition("user", ["ada"])]]);
  });

  it("are as many as a page can show", () => {
    const { where, notices } = read(...Array.from({ length: 30 }, (_, index) => `user:u${index}`));
    expect(where.length).toBe(24);
    expect(notices).toHaveLength(1);
  });
});

describe("changes of conditions", () => {
  it("set and clear the one clause that a facet or legend shows", () => {
    const base = read("user:ada|project:x", "!user:eve").where;
    const where = withNames(base, "user", ["bob"]);
    expect(where).toEqual([...base, [namesCondition("user", ["bob"])]]);
    expect(findNames(where, "user")).toEqual(["bob"]);
    expect(withNames(where, "user", [])).toEqual(base);
    expect(withNames(base, "user", [])).toBe(base);
  });

  it("set and clear a range", () => {
    const ranged = withRange([], "gpu_util_ratio", { min: 0.2, max: null });
    expect(findRange(ranged, "gpu_util_ratio")).toMatchObject({ min: 0.2, max: null });
    expect(withRange(ranged, "gpu_util_ratio", { min: null, max: null })).toEqual([]);
    expect(withRange([], "gpu_util_ratio", null)).toEqual([]);
  });
});
