// Legend of the marks and cells that occur in the flow.

import type { FlowAnswer } from "../../../api/generated.ts";
import { Legend } from "../../../widgets/legend.tsx";
import { KIND_COLORS } from "../graph/kinds.ts";
import styles from "./flow.module.css";
import { MARK_COLORS, MARK_PATHS, MARK_TITLES, MARKS, splitColor } from "./looks.ts";

export function FlowLegend({ flow }: { flow: FlowAnswer }) {
  const marks = new Set(flow.nodes.flatMap((node) => node.marks.map(({ mark }) => mark)));
  const splits = new Set(flow.edges.flatMap(({ shard }) => shard ?? []));
  return (
    <Legend className={styles.legend} aria-label="Marks">
      {(["forward", "backward"] as const).map((kind) => (
        <li key={kind}>
          <i data-swatch={true} style={{ background: KIND_COLORS[kind] }} /> {kind}
        </li>
      ))}
      {MARKS.filter((mark) => marks.has(mark)).map((mark) => (
        <li key={mark}>
          <svg width={12} height={12} viewBox="-6 -6 12 12" aria-hidden="true">
            <path d={MARK_PATHS[mark]} fill={MARK_COLORS[mark]} />
          </svg>
          {MARK_TITLES[mark]}
        </li>
      ))}
      {splits.size > 0 && <li>Cells on edges, one per dimension:</li>}
      {[...splits]
        .sort((a, b) => a - b)
        .map((parts) => (
          <li key={parts}>
            <i data-swatch={true} style={{ background: splitColor(parts) }} />{" "}
            {parts === 1 ? "whole" : `split in ${parts}`}
          </li>
        ))}
    </Legend>
  );
}
