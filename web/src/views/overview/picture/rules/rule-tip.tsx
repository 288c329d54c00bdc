// The tooltip of a rule bar: the rule, and how many units of the group and in total break it.

import { formatCount, formatPlural, formatRatio } from "../../../../base/format.ts";
import { labelOf, type UnitLayout } from "../../../../layout/layout.ts";
import { boxOf } from "../group-painter.ts";
import styles from "../picture.module.css";
import type { Stage } from "../stage.ts";
import { toCss } from "../tokens.ts";
import type { PointedRule } from "./rule-bars.ts";
import { countIn, type RuleMarks } from "./rule-marks.ts";
import own from "./rule-tip.module.css";

interface RuleTipProps {
  readonly stage: Stage;
  readonly layout: UnitLayout;
  readonly marks: RuleMarks;
  readonly pointed: PointedRule;
}

const TIP_WIDTH = 300;
const TIP_HEIGHT = 150;
const GAP = 8;

export function RuleTip({ stage, layout, marks, pointed: { group, rule } }: RuleTipProps) {
  const shown = marks.rules[rule];
  if (shown === undefined) return null;
  const box = boxOf(layout, group, stage.camera);
  const { width, height } = stage.viewport;
  const left = Math.max(4, Math.min(box.left, width - TIP_WIDTH - 4));
  const isBelow = box.top < TIP_HEIGHT + 30;
  const place = isBelow
    ? { top: Math.min(box.top + GAP + 12, height - TIP_HEIGHT) }
    : { bottom: height - box.top + 30 };
  const brokenHere = countIn(marks, rule, group);
  const units = layout.groups.unitCount[group] ?? 0;
  const { rule: said, broken, past } = shown.rows;
  return (
    <div role="tooltip" className={styles.tip} style={{ left, ...place, width: TIP_WIDTH }}>
      <header>
        <b>
          <i data-swatch={true} data-severity={shown.severity} style={{ background: toCss(shown.color) }} />{" "}
          {shown.name}
        </b>
        <small>{shown.severity}</small>
      </header>
      <code className={own.text}>{said.text}</code>
      <dl className={styles.facts}>
        <div>
          <dt>{labelOf(layout, group)}</dt>
          <dd>
            {formatCount(brokenHere)} of {formatPlural(units, "GPU")} · {formatRatio(brokenHere / Math.max(1, units))}
          </dd>
        </div>
        <div>
          <dt>in all</dt>
          <dd>
            {formatPlural(broken.length, "GPU")}
            {past.length > 0 && ` · ${formatCount(past.length)} earlier`}
          </dd>
        </div>
      </dl>
    </div>
  );
}
