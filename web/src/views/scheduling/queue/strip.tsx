// Summary of the queue: waiting workloads, requested GPUs, longest wait, and when the queue is likely empty.

import type { QueueAnswer } from "../../../api/generated.ts";
import { formatCount, MISSING } from "../../../base/format.ts";
import { formatAgo, formatDuration, formatInstant } from "../../../base/time.ts";
import { ReservationFigure } from "../../../parts/scheduling/reservation-figure.tsx";
import { select } from "../../../state/changes.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { Figure, Strip } from "../../../widgets/strip.tsx";
import styles from "./queue.module.css";
import { describeBlocked, summarizeQueue } from "./words.ts";

export function QueueStrip({ queue }: { queue: QueueAnswer | undefined }) {
  const change = useChangeScreen();
  const rows = queue?.workloads ?? [];
  const { held, blocked, longest } = summarizeQueue(rows);
  return (
    <Strip>
      <Figure
        value={queue ? formatCount(rows.length) : MISSING}
        label={
          <>
            waiting
            {held > 0 && `, ${formatCount(held)} held`}
            {blocked > 0 && `, ${formatCount(blocked)} blocked`}
          </>
        }
        tip={blocked > 0 ? describeBlocked(rows) : undefined}
      />
      <Figure value={queue ? formatCount(queue.gpus_asked) : MISSING} label="GPUs requested" />
      <Figure
        value={formatDuration(queue?.longest_wait_s)}
        label="longest wait"
        tip="Show the workload that waits longest"
        isDisabled={longest === null}
        onClick={() => longest && change(select({ kind: "workload", key: longest.workload }))}
      />
      <Figure
        value={queue?.drained_at ? formatAgo(queue.drained_at, queue.at) : MISSING}
        label="queue likely empty"
        tip={
          queue?.drained_at
            ? `The last workload in line likely starts ${formatInstant(queue.drained_at, queue.at)}`
            : undefined
        }
      />
      {queue && <ReservationFigure reservations={queue.reservations} nowMs={queue.at} />}
      {queue && !queue.is_learned && rows.length > 0 && (
        <div
          className={styles.note}
          data-tip="Until 200 jobs of this cluster have ended, run times are assumed to be spread evenly up to the limit"
        >
          run-time model not trained yet
        </div>
      )}
    </Strip>
  );
}
