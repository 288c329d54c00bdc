import { describe, expect, it } from "vitest";
import type { RuleAnswer, Severity } from "../../api/generated.ts";
import { type BarRule, fitBar, orderBar } from "./bar-order.ts";

function rule(key: string, severity: Severity, workloads: number, isNew = false): BarRule {
  return { rule: { key, severity } as RuleAnswer, counts: { workloads, units: workloads, unjudged: 0 }, isNew };
}

const keys = (rules: readonly BarRule[]) => rules.map((entry) => entry.rule.key).join(" ");
const shownOf = (rules: readonly BarRule[], places: number) =>
  keys(fitBar(orderBar(rules), new Array<number>(rules.length).fill(10), { width: places * 10, gap: 0, more: 0 }));

describe("the bar of rules", () => {
  const RULES = [
    rule("a", "info", 0),
    rule("b", "info", 3),
    rule("c", "critical", 0),
    rule("d", "warning", 1),
    rule("e", "critical", 2),
  ];

  it("has broken rules first, in their own order, then the kept ones", () => {
    expect(keys(orderBar(RULES))).toBe("b d e a c");
  });

  it("shows the most severe of the broken where there is no room for all", () => {
    expect(shownOf(RULES, 5)).toBe("b d e a c");
    expect(shownOf(RULES, 3)).toBe("b d e");
    expect(shownOf(RULES, 2)).toBe("d e");
    expect(shownOf(RULES, 1)).toBe("e");
  });

  it("never hides a new rule, though no violations", () => {
    const withNew = [...RULES, rule("new", "info", 0, true)];
    expect(shownOf(withNew, 2)).toBe("e new");
    expect(shownOf(withNew, 1)).toBe("new");
  });

  it("counts a rule of hardware as broken, which has units and no workload", () => {
    const node = { ...rule("node", "warning", 0), counts: { workloads: 0, units: 8, unjudged: 0 } };
    expect(keys(orderBar([RULES[0], node].flatMap((rule) => rule ?? [])))).toBe("node a");
  });
});
