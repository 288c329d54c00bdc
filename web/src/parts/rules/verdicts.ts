// The state of each rule for a workload, in the order of the bar. Pure.

import type { RuleAnswer, UnitVerdict, ViolationAnswer, WorkloadVerdicts } from "../../api/generated.ts";

export type RuleState = "broken" | "past" | "fine" | "not judged" | "out of scope";

export interface RuleVerdict {
  readonly rule: RuleAnswer;
  readonly state: RuleState;
  /** Units that break it now, of those it was asked of. */
  readonly broken: number;
  readonly units: number;
  /** Why it is not judged. */
  readonly why: string;
  /** The one whose numbers are shown: of a unit that breaks it, where there is one. */
  readonly example: UnitVerdict | null;
  /** The violations of it, the newest first. */
  readonly violations: readonly ViolationAnswer[];
}

/** `unit`: only of this one. */
export function sumVerdicts(
  rules: readonly RuleAnswer[],
  { verdicts, violations }: WorkloadVerdicts,
  unit: string | null = null,
): readonly RuleVerdict[] {
  return rules
    .filter((rule) => rule.is_enabled)
    .map((rule) => {
      const ruleVerdicts = verdicts.filter(
        (verdict) => verdict.rule === rule.key && (unit === null || verdict.unit === unit),
      );
      const broken = ruleVerdicts.filter(({ state }) => state === "met");
      const past = violations
        .filter(
          (violation) =>
            violation.rule === rule.key &&
            (unit === null || violation.units.length === 0 || violation.units.includes(unit)),
        )
        .sort((a, b) => b.since - a.since);
      const open = ruleVerdicts.find(({ state }) => state === "not judged");
      const example = broken[0] ?? open ?? ruleVerdicts[0] ?? null;
      return {
        rule,
        state: stateOf(ruleVerdicts, broken.length, past),
        broken: broken.length,
        units: ruleVerdicts.length,
        why: open?.why ?? "",
        example,
        violations: past,
      };
    });
}

function stateOf(own: readonly UnitVerdict[], broken: number, past: readonly ViolationAnswer[]): RuleState {
  if (broken > 0) return "broken";
  if (past.some(({ until }) => until !== null)) return "past";
  if (own.some(({ state }) => state === "not judged")) return "not judged";
  return own.some(({ state }) => state === "not met") ? "fine" : "out of scope";
}
