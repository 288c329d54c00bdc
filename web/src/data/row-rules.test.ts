import { describe, expect, it } from "vitest";
import type { NameColumn } from "../api/columns.ts";
import type { RuleAnswer, Severity } from "../api/generated.ts";
import type { Snapshot } from "../api/snapshot.ts";
import { alignRules, BROKEN, countWorkloads, PAST, readRule, readWorst } from "./row-rules.ts";

function toNames(values: readonly (string | null)[]): NameColumn {
  const names = [null, ...new Set(values.filter((value) => value !== null))];
  return { codes: Uint32Array.from(values, (value) => names.indexOf(value)), names };
}

const COLUMNS: Readonly<Record<string, NameColumn>> = {
  unit: toNames(["n1:0", "n1:1", "n2:0", "n2:1"]),
  unit_state: toNames(["allocated", "allocated", "allocated", "free"]),
  workload: toNames(["a", "a", "b", null]),
};
const SNAPSHOT = { rowCount: 4, names: (column: string) => COLUMNS[column] } as unknown as Snapshot;

function rule(key: string, severity: Severity, isEnabled = true): RuleAnswer {
  return { key, name: `Rule ${key}`, severity, is_enabled: isEnabled } as RuleAnswer;
}

const RULES = [rule("low", "warning"), rule("stall", "critical"), rule("off", "critical", false)];
const SAID = {
  at: 0,
  rules: [
    { rule: "low", units: ["n1:0", "n1:1", "gone:7"], past: ["n2:0"] },
    { rule: "stall", units: ["n1:1"], past: ["n1:1", "n1:0"] },
  ],
};

describe("what rules say of rows", () => {
  const rules = alignRules(SNAPSHOT, RULES, SAID);

  it("leaves out disabled rules and units that are gone", () => {
    expect(rules.rules.map(({ rule: { key } }) => key)).toEqual(["low", "stall"]);
    expect([...(rules.rules[0]?.states ?? [])]).toEqual([BROKEN, BROKEN, PAST, 0]);
  });

  it("is not past where it is broken again", () => {
    expect([...(rules.rules[1]?.past ?? [])]).toEqual([0]);
    expect([...(rules.rules[1]?.broken ?? [])]).toEqual([1]);
  });

  it("names the most severe broken rule, none, or nothing for what nobody holds", () => {
    const { codes, names } = readWorst(rules);
    expect([...codes].map((code) => names[code])).toEqual(["Rule low", "Rule stall", "none broken", null]);
  });

  it("tells of one rule who breaks it, broke it and keeps it", () => {
    const { codes, names } = readRule(rules, "stall");
    expect([...codes].map((code) => names[code])).toEqual(["past", "broken", "kept", null]);
    expect([...readRule(rules, "off").codes]).toEqual([0, 0, 0, 0]);
  });

  it("is the same object where nothing changed, and another one where something did", () => {
    expect(alignRules(SNAPSHOT, RULES, { ...SAID, at: 9 }, rules)).toBe(rules);
    const renamed = RULES.map((rule) => ({ ...rule, name: `${rule.name}!` }));
    expect(alignRules(SNAPSHOT, renamed, SAID, rules).version).not.toBe(rules.version);
  });

  it("counts workloads, not units", () => {
    const [low] = rules.rules;
    expect(low && countWorkloads(SNAPSHOT, low)).toBe(1);
  });

  it("says nothing of anybody before the server has judged", () => {
    const { codes, names } = readWorst(alignRules(SNAPSHOT, RULES, undefined));
    expect([...codes].map((code) => names[code])).toEqual(["none broken", "none broken", "none broken", null]);
  });
});
