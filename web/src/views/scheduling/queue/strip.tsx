// The queue in one line: how many wait, for how much, since when at most, and until when.

import type { QueueAnswer } from "../../../api/generated.ts";
import { formatCount, MISSING } from "../../../base/format.ts";
import { formatAgo, formatDuration, formatInstant } from "../../../base/time.ts";
import { ReservationFigure } from "../../../parts/scheduling/reservation-figure.tsx";
import { select } from "../../../state/changes.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import styles from "./strip.module.css";
import { sayBlocked, summarizeQueue } from "./words.ts";

export function Strip({ queue }: { queue: QueueAnswer | undefined }) {
  const change = useChangeScreen();
  const rows = queue?.workloads ?? [];
  const { held, blocked, longest } = summarizeQueue(rows);
  return (
    <div className={styles.strip}>
      <div className={styles.figure}>
        <b>{queue ? formatCount(rows.length) : MISSING}</b>
        <span data-tip={blocked > 0 ? sayBlocked(rows) : undefined}>
          waiting
          {held > 0 && `, ${formatCount(held)} held`}
          {blocked > 0 && `, ${formatCount(blocked)} not for room`}
        </span>
      </div>
      <div className={styles.figure}>
        <b>{queue ? formatCount(queue.gpus_asked) : MISSING}</b>
        <span>GPUs asked for</span>
      </div>
      <button
        type="button"
        className={styles.figure}
        disabled={longest === null}
        data-tip="Show the one that waits longest"
        onClick={() => longest && change(select({ kind: "workload", key: longest.workload }))}
      >
        <b>{formatDuration(queue?.longest_wait_s)}</b>
        <span>longest wait</span>
      </button>
      <div
        className={styles.figure}
        data-tip={
          queue?.drained_at
            ? `The last one that waits for room likely starts ${formatInstant(queue.drained_at, queue.at)}`
            : undefined
        }
      >
        <b>{queue?.drained_at ? formatAgo(queue.drained_at, queue.at) : MISSING}</b>
        <span>all have likely started</span>
      </div>
      {queue && (
        <ReservationFigure reservations={queue.reservations} nowMs={queue.at} className={styles.figure ?? ""} />
      )}
      {queue && !queue.is_learned && rows.length > 0 && (
        <div
          className={styles.note}
          data-tip="Until 200 jobs of this cluster have ended, any share of a limit is as likely as another"
        >
          run times are not learned yet
        </div>
      )}
    </div>
  );
}
