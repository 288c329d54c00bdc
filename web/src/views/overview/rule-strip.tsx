// The rule bar of the overview: shows, hides and filters rules in the picture.

import { useMemo } from "react";
import type { RuleCounts } from "../../api/generated.ts";
import { countWorkloads } from "../../data/row-rules.ts";
import type { Units } from "../../data/units.ts";
import { RuleBar } from "../../parts/rules/rule-bar.tsx";
import { openRule, setNames, toggleRule } from "../../state/changes.ts";
import { attributeOfRule } from "../../state/rules.ts";
import type { Screen } from "../../state/screen.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import type { Highlight } from "./picture/color/coloring.ts";

interface RuleStripProps {
  readonly screen: Screen;
  readonly units: Units | undefined;
  /** Makes units stand out; null where there is no picture. */
  readonly highlight: ((lit: Highlight | null) => void) | null;
}

export function RuleStrip({ screen, units, highlight }: RuleStripProps) {
  const change = useChangeScreen();
  const isPast = screen.at !== null;
  const past = useMemo(() => (isPast ? countPast(units) : null), [isPast, units]);
  const point = (key: string | null) => {
    const rowRule = key === null ? undefined : units?.rules?.rules.find(({ rule }) => rule.key === key);
    highlight?.(rowRule && rowRule.broken.length > 0 ? { kind: "rows", rows: rowRule.broken } : null);
  };
  return (
    <RuleBar
      hidden={screen.hiddenRules}
      past={past}
      onToggle={(key) => change(toggleRule(key))}
      onPoint={point}
      onFilter={(key) => change(setNames(attributeOfRule(key), ["broken"]))}
      onOpenPage={(key) => change(openRule(key))}
    />
  );
}

/** Of a past minute only the units that broke a rule are known. */
function countPast(units: Units | undefined): ReadonlyMap<string, RuleCounts> {
  const rules = units?.rules;
  return new Map(
    rules?.rules.map((row) => [
      row.rule.key,
      { workloads: countWorkloads(rules.snapshot, row), units: row.broken.length, unjudged: 0 },
    ]),
  );
}
