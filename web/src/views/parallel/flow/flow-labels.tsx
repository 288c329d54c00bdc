// Names of the stages, left of the flow's rows.

import type { FlowAnswer } from "../../../api/generated.ts";
import { formatPlural } from "../../../base/format.ts";
import styles from "./flow.module.css";
import type { FlowLayout } from "./layout.ts";

interface LabelsProps {
  readonly flow: FlowAnswer;
  readonly layout: FlowLayout;
  readonly scale: number;
  readonly top: number;
}

export function FlowLabels({ flow, layout, scale, top }: LabelsProps) {
  return (
    <div className={styles.labels}>
      {flow.stages.map(({ stage, ranks }, at) => {
        const box = layout.stages[at];
        const middle = box ? (box.y + Math.min(box.height, 60) / 2) * scale - top - 16 : 0;
        return (
          <div key={stage ?? "all"} style={{ top: middle }}>
            {stage === null ? "All ranks" : `Stage ${stage}`}
            {ranks.length > 0 && <small>{formatPlural(ranks.length, "rank")}</small>}
          </div>
        );
      })}
    </div>
  );
}
