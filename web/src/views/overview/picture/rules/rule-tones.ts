// The colors of rules as numbers, for the current theme.

import type { RuleAnswer } from "../../../../api/generated.ts";
import type { PackedColor } from "../../../../layers/squares/marks.ts";
import { colorRules } from "../../../../parts/rules/rule-colors.ts";
import type { Tokens } from "../tokens.ts";

/** Half of the way from black to white. */
const MIDDLE = 0x80;

/** By key. */
export function listRuleColors(
  rules: readonly RuleAnswer[],
  { bg }: Pick<Tokens, "bg">,
): ReadonlyMap<string, PackedColor> {
  const isDark = ((bg >> 8) & 255) < MIDDLE;
  return new Map(
    [...colorRules(rules)].map(([key, { light, dark }]) => [
      key,
      Number.parseInt((isDark ? dark : light).slice(1), 16),
    ]),
  );
}
