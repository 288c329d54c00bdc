import { describe, expect, it } from "vitest";
import type { RuleAnswer } from "../../api/generated.ts";
import { moveKey, moveKeyTo } from "./use-rule-changes.ts";

const rules = ["a", "off", "b", "c"].map((key) => ({ key, is_enabled: key !== "off" }) as RuleAnswer);

describe("the order of rules", () => {
  it("changes past the next one that is enabled", () => {
    expect(moveKey(rules, "a", 1)).toEqual(["off", "b", "a", "c"]);
    expect(moveKey(rules, "b", -1)).toEqual(["b", "a", "off", "c"]);
  });

  it("ends at the ends", () => {
    expect(moveKey(rules, "a", -1)).toEqual(["a", "off", "b", "c"]);
    expect(moveKey(rules, "c", 1)).toEqual(["a", "off", "b", "c"]);
  });

  it("puts one where another was dropped on", () => {
    expect(moveKeyTo(rules, "c", "a")).toEqual(["c", "a", "off", "b"]);
    expect(moveKeyTo(rules, "a", "c")).toEqual(["off", "b", "c", "a"]);
  });
});
