import { describe, expect, it } from "vitest";
import type { RuleAnswer, UnitVerdict, ViolationAnswer } from "../../api/generated.ts";
import { sumVerdicts } from "./verdicts.ts";

const rule = (key: string, isEnabled = true) => ({ key, is_enabled: isEnabled }) as RuleAnswer;
const verdict = (key: string, unit: string, state: string, why = ""): UnitVerdict => ({
  rule: key,
  unit,
  state,
  why,
  readings: [],
});
const violation = (key: string, until: number | null, units: readonly string[] = []) =>
  ({ rule: key, since: 1, until, units }) as ViolationAnswer;

describe("verdicts of a workload", () => {
  const verdicts = [
    verdict("a", "n:0", "met"),
    verdict("a", "n:1", "not met"),
    verdict("b", "n:0", "not met"),
    verdict("c", "n:0", "not judged", "younger than 30m"),
    verdict("d", "n:0", "out of scope"),
  ];
  const all = { workload: "w", judged_at: 1, units: 2, spans: [], verdicts, violations: [violation("b", 9)] };
  const rules = [rule("d"), rule("c"), rule("b"), rule("a"), rule("off", false)];

  it("come in the order of the bar, one for each rule that is enabled", () => {
    expect(sumVerdicts(rules, all).map(({ rule: { key }, state }) => [key, state])).toEqual([
      ["d", "out of scope"],
      ["c", "not judged"],
      ["b", "past"],
      ["a", "broken"],
    ]);
  });

  it("say how many GPUs break a rule, why another is not judged, and what it is for one GPU", () => {
    expect(sumVerdicts([rule("a")], all)[0]).toMatchObject({ broken: 1, units: 2 });
    expect(sumVerdicts([rule("c")], all)[0]?.why).toBe("younger than 30m");
    expect(sumVerdicts([rule("a")], all, "n:1")[0]?.state).toBe("fine");
  });
});
