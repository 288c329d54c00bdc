// The tooltip of a group: its name and totals.

import { useMemo } from "react";
import { MINUTE_MS } from "../../../base/durations.ts";
import { useCluster } from "../../../data/queries.ts";
import type { Units } from "../../../data/units.ts";
import { alignWaste, useUnitWaste } from "../../../data/waste.ts";
import type { UnitLayout } from "../../../layout/layout.ts";
import { useScreen } from "../../../state/use-screen.ts";
import { useNow } from "../../../widgets/clock-context.ts";
import { totalFacts } from "../details/total-facts.ts";
import { computeTotals } from "../details/unit-totals.ts";
import type { Size } from "./camera.ts";
import { boxOf } from "./group-painter.ts";
import { listGroupRows, listLabels } from "./groups.ts";
import styles from "./picture.module.css";
import { GroupRuleLines } from "./rules/rule-lines.tsx";
import { listBroken, type RuleMarks } from "./rules/rule-marks.ts";
import type { Stage } from "./stage.ts";

interface GroupTipProps {
  readonly stage: Stage;
  readonly layout: UnitLayout;
  readonly units: Units;
  readonly group: number;
  readonly marks: RuleMarks | null;
}

const TIP_WIDTH = 264;
const LINE_PX = 18;
const HEAD_PX = 48;
const GAP = 10;

export function GroupTip({ stage, layout, units, group, marks }: GroupTipProps) {
  const isPast = useScreen().at !== null;
  const minute = Math.floor(useNow() / MINUTE_MS) * MINUTE_MS;
  const cluster = useCluster().value;
  const waste = useUnitWaste(!isPast).value;
  const totals = useMemo(() => {
    const rowWaste = waste && !isPast ? alignWaste(units.snapshot, waste) : null;
    return computeTotals(units, listGroupRows(layout, group), minute, rowWaste);
  }, [units, layout, group, minute, waste, isPast]);
  const labels = listLabels(layout, group);
  const facts = totalFacts(totals, cluster?.gpu_util_ratio ?? null).filter(({ value }) => value !== null);
  const ruleLines = marks ? Math.min(5, listBroken(marks, group).length) : 0;
  const box = boxOf(layout, group, stage.camera);
  const place = placeTip(box, stage.viewport, HEAD_PX + (facts.length + ruleLines) * LINE_PX);
  return (
    <div role="tooltip" className={styles.tip} style={{ ...place, width: TIP_WIDTH }}>
      {labels.length > 1 && <p className={styles.quiet}>{labels.slice(0, -1).join(" › ")}</p>}
      <header>
        <b>{labels.at(-1)}</b>
        <small>{layout.layers[labels.length - 1]?.attribute.replaceAll("_", " ")}</small>
      </header>
      <dl className={styles.facts}>
        {facts.map(({ name, value }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {marks && <GroupRuleLines marks={marks} group={group} units={layout.groups.unitCount[group] ?? 0} />}
    </div>
  );
}

/** Next to the group if there is room, so that it stays visible; otherwise inside it. */
function placeTip(
  { left, top, width }: { left: number; top: number; width: number },
  picture: Size,
  height: number,
): { left: number; top: number } {
  const right = left + width + GAP;
  const before = left - GAP - TIP_WIDTH;
  const inside = Math.min(picture.width - TIP_WIDTH - 4, Math.max(4, left + width - TIP_WIDTH - GAP));
  const at = right + TIP_WIDTH <= picture.width ? right : before >= 0 ? before : inside;
  return { left: at, top: Math.max(4, Math.min(top, picture.height - height - 4)) };
}
