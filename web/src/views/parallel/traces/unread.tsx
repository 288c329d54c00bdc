// A trace that cannot be drawn: how far its reading is, or why it failed and what can be done.

import type { TraceRow } from "../../../api/generated.ts";
import { formatRatio } from "../../../base/format.ts";
import { toSentence } from "../../../base/problem.ts";
import { Button } from "../../../widgets/button.tsx";
import { Icon } from "../../../widgets/icon.tsx";
import { ReadAgain } from "./read-again.tsx";
import styles from "./unread.module.css";

interface UnreadProps {
  readonly row: TraceRow;
  onChoose(): void;
}

export function Unread({ row, onChoose }: UnreadProps) {
  if (row.state !== "failed") {
    return (
      <div className={styles.unread} role="status">
        <strong>Reading {row.name}</strong>
        <progress
          max={1}
          {...(row.progress === null ? {} : { value: row.progress })}
          aria-label={`Reading ${row.name}`}
        />
        <span>
          {row.progress === null ? "Its files are still on their way." : `${formatRatio(row.progress)} of its files.`}{" "}
          The graph opens when it has been read.
        </span>
      </div>
    );
  }
  return (
    <div className={styles.unread} role="alert">
      <span className={styles.bad}>
        <Icon name="alert" size={20} />
      </span>
      <strong>{row.name} could not be read</strong>
      <span className={styles.why}>{toSentence(row.problem ?? "Nobody knows why")}</span>
      <div className={styles.ways}>
        <ReadAgain trace={row.trace_id} />
        <Button onClick={onChoose}>Choose another trace</Button>
      </div>
    </div>
  );
}
