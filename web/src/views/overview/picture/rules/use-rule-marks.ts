// Connects rule results with the picture: which rules are shown in which colors, and their marks in the current layout.

import { useEffect, useMemo } from "react";
import type { UnitRules } from "../../../../data/row-rules.ts";
import type { Stage } from "../stage.ts";
import type { Tokens } from "../tokens.ts";
import type { PlacedUnits } from "../use-layout.ts";
import type { PictureModel } from "../use-picture.ts";
import { computeRuleMarks, type RuleMarks, type ShownRule } from "./rule-marks.ts";
import { listRuleColors } from "./rule-tones.ts";

export function listShownRules(
  rules: UnitRules | undefined,
  hidden: readonly string[],
  tokens: Pick<Tokens, "bg" | "muted">,
): readonly ShownRule[] {
  if (rules === undefined) return [];
  const colors = listRuleColors(rules.all, tokens);
  return rules.rules
    .filter(({ rule }) => !hidden.includes(rule.key))
    .map((rows) => {
      const { key, name, severity } = rows.rule;
      return { key, name, severity, color: colors.get(key) ?? tokens.muted, rows };
    });
}

/** Null while the places on the screen are those of other units. */
export function useRuleMarks(
  stage: Stage | null,
  { units, rules }: PictureModel,
  placed: PlacedUnits | null,
): RuleMarks | null {
  const layout = placed !== null && placed.units.snapshot === units.snapshot ? placed.layout : null;
  const marks = useMemo(() => layout && computeRuleMarks(layout, rules), [layout, rules]);
  useEffect(() => {
    if (marks !== null) stage?.setRules(marks);
  }, [stage, marks]);
  return marks;
}
