// The overview as it would be in some hours: every GPU a small square, marked where its holder would be another than as it is.

import type { NodePicture, WhatIfAnswer } from "../../../api/generated.ts";
import { formatPlural } from "../../../base/format.ts";
import { formatShortDuration } from "../../../base/time.ts";
import { changeScheduling, PICTURE_AHEAD, type PictureAhead } from "../../../state/scheduling.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { Segmented } from "../../../widgets/segmented.tsx";
import styles from "./what-if.module.css";

const CELL = 5;
const GAP = 1;

export interface DrawnCell {
  readonly x: number;
  readonly y: number;
  readonly kind: "held" | "free" | "other";
}

/** Nodes by partition, column by column; a GPU is another where somebody else would hold it. */
export function layOut(nodes: readonly NodePicture[], perRow: number): readonly DrawnCell[] {
  const sorted = nodes.toSorted((a, b) => a.partition.localeCompare(b.partition) || a.node.localeCompare(b.node));
  return sorted.flatMap((node, place) => {
    const counts = new Map<string | null, number>();
    for (const holder of node.baseline) counts.set(holder, (counts.get(holder) ?? 0) + 1);
    return node.changed.map((holder, gpu) => {
      const left = counts.get(holder) ?? 0;
      counts.set(holder, left - 1);
      return {
        x: (place % perRow) * (CELL + GAP + 1),
        y: Math.floor(place / perRow) * (8 * (CELL + GAP) + 6) + gpu * (CELL + GAP),
        kind: left <= 0 ? "other" : holder === null ? "free" : "held",
      } as const;
    });
  });
}

export function MiniPicture({ answer, ahead }: { answer: WhatIfAnswer; ahead: PictureAhead }) {
  const change = useChangeScreen();
  const perRow = Math.max(16, Math.min(48, Math.ceil(Math.sqrt(answer.nodes.length * 6))));
  const cells = layOut(answer.nodes, perRow);
  const width = perRow * (CELL + GAP + 1);
  const height = Math.max(...cells.map(({ y }) => y), 0) + CELL;
  const others = cells.filter(({ kind }) => kind === "other").length;
  const label = `${formatPlural(others, "GPU")} of ${cells.length} held by somebody else, or free, in ${formatShortDuration(
    (answer.picture_at - answer.at) / 1000,
  )}`;
  return (
    <figure className={styles.picture}>
      <Segmented
        label="Picture of"
        name="ahead"
        value={ahead}
        options={PICTURE_AHEAD.map((hours) => ({ value: hours, title: `in ${hours} h` }))}
        onChange={(next) => change(changeScheduling({ ahead: next }))}
      />
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
        {cells.map(({ x, y, kind }) => (
          <rect key={`${x} ${y}`} x={x} y={y} width={CELL} height={CELL} rx={1} className={styles[kind]} />
        ))}
      </svg>
      <figcaption>{label}</figcaption>
    </figure>
  );
}
