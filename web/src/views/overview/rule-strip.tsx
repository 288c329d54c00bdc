// The rule bar in the overview: what it shows, hides and filters in the picture.

import { useMemo } from "react";
import type { RuleCounts } from "../../api/generated.ts";
import { countWorkloads } from "../../data/row-rules.ts";
import type { Units } from "../../data/units.ts";
import { RuleBar } from "../../parts/rules/rule-bar.tsx";
import { openRule, setNames, toggleRule } from "../../state/changes.ts";
import { attributeOfRule } from "../../state/rules.ts";
import type { Screen } from "../../state/screen.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import type { Lit } from "./picture/color/coloring.ts";

interface RuleStripProps {
  readonly screen: Screen;
  readonly units: Units | undefined;
  /** Makes units stand out; null where there is no picture. */
  readonly light: ((lit: Lit | null) => void) | null;
}

export function RuleStrip({ screen, units, light }: RuleStripProps) {
  const change = useChangeScreen();
  const isPast = screen.at !== null;
  const past = useMemo(() => (isPast ? countPast(units) : null), [isPast, units]);
  const point = (key: string | null) => {
    const found = key === null ? undefined : units?.rules?.rules.find(({ rule }) => rule.key === key);
    light?.(found && found.broken.length > 0 ? { kind: "rows", rows: found.broken } : null);
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
  const said = units?.rules;
  return new Map(
    said?.rules.map((row) => [
      row.rule.key,
      { workloads: countWorkloads(said.snapshot, row), units: row.broken.length, unjudged: 0 },
    ]),
  );
}
