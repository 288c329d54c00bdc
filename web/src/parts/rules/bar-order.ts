// Which rules the bar shows: broken rules first, in the order of the rules; if not all fit, rules that are new on this
// page stay, then broken and severe ones. Pure.

import type { RuleAnswer, RuleCounts } from "../../api/generated.ts";
import { severityRank } from "../../data/row-rules.ts";
import { foldLines } from "./fold.ts";

export interface BarRule {
  readonly rule: RuleAnswer;
  readonly counts: RuleCounts | null;
  readonly isNew: boolean;
}

/** More than any rank of a severity. */
const KEPT = 10;
const NEW = -1;

export function isBroken({ counts }: BarRule): boolean {
  return (counts?.workloads ?? 0) > 0 || (counts?.units ?? 0) > 0;
}

/** Broken rules first; within both the order they have. */
export function orderBar<T extends BarRule>(rules: readonly T[]): readonly T[] {
  return [...rules.filter(isBroken), ...rules.filter((rule) => !isBroken(rule))];
}

interface BarRoom {
  readonly width: number;
  readonly gap: number;
  /** For the sign that there are more. */
  readonly more: number;
}

/** As many as one line has room for. `widths`: of each in the same order. */
export function fitBar<T extends BarRule>(rules: readonly T[], widths: readonly number[], room: BarRoom): readonly T[] {
  const ranks = rules.map((rule) =>
    rule.isNew ? NEW : severityRank(rule.rule.severity) + (isBroken(rule) ? 0 : KEPT),
  );
  return foldLines(widths, ranks, { ...room, lines: 1 }).flatMap((at) => rules[at] ?? []);
}
