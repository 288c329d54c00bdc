// Names of the stages, left of the flow's rows.

import type { FlowAnswer } from "../../../api/generated.ts";
import { formatPlural } from "../../../base/format.ts";
import styles from "./flow.module.css";
import type { FlowLayout } from "./layout.ts";

/** Rows closer than this have no room for a second line, or for any. */
const [MIN_PITCH_PX, MIN_LINE_PX] = [34, 15];

interface LabelsProps {
  readonly flow: FlowAnswer;
  readonly layout: FlowLayout;
  /** The vertical one. */
  readonly scale: number;
  readonly top: number;
  /** Above the flow, in px. */
  readonly pad: number;
}

export function FlowLabels({ flow, layout, scale, top, pad }: LabelsProps) {
  const pitch = layout.stages.length > 1 ? (layout.size.height / layout.stages.length) * scale : MIN_PITCH_PX;
  const every = Math.max(1, Math.ceil(MIN_LINE_PX / pitch));
  return (
    <div className={styles.labels}>
      {flow.stages.map(({ stage, ranks }, at) => {
        if (at % every > 0) return null;
        const box = layout.stages[at];
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
