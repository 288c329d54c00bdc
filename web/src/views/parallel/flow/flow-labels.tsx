// Names of the stages, left of the flow's rows.

import type { FlowAnswer } from "../../../api/generated.ts";
import { formatPlural } from "../../../base/format.ts";
import styles from "./flow.module.css";
import type { FlowLayout } from "./layout.ts";

/** Rows closer than this have no room for a second line. */
const MIN_PITCH_PX = 34;

interface LabelsProps {
  readonly flow: FlowAnswer;
  readonly layout: FlowLayout;
  readonly scale: number;
  readonly top: number;
  /** Above the flow, in px. */
  readonly pad: number;
}

export function FlowLabels({ flow, layout, scale, top, pad }: LabelsProps) {
  return (
    <div className={styles.labels}>
      {flow.stages.map(({ stage, ranks }, at) => {
        const box = layout.stages[at];
        const pitch = layout.stages.length > 1 ? (layout.size.height / layout.stages.length) * scale : MIN_PITCH_PX;
        const middle = box
          ? (box.y + Math.min(box.height, 60) / 2) * scale + pad - top - (pitch >= MIN_PITCH_PX ? 16 : 8)
          : 0;
        return (
          <div key={stage ?? "all"} style={{ top: middle }}>
            {stage === null ? "All ranks" : `Stage ${stage}`}
            {ranks.length > 0 && pitch >= MIN_PITCH_PX && <small>{formatPlural(ranks.length, "rank")}</small>}
          </div>
        );
      })}
    </div>
  );
}
