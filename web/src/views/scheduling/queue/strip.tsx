// The queue in one line: how many wait, for how much, since when at most, and until when.

import type { QueueAnswer } from "../../../api/generated.ts";
import { formatCount, MISSING } from "../../../base/format.ts";
import { formatAgo, formatDuration, formatInstant } from "../../../base/time.ts";
import { ReservationFigure } from "../../../parts/scheduling/reservation-figure.tsx";
import { select } from "../../../state/changes.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { Figure, Strip } from "../../../widgets/strip.tsx";
import styles from "./queue.module.css";
import { sayBlocked, summarizeQueue } from "./words.ts";

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
            {blocked > 0 && `, ${formatCount(blocked)} not for room`}
          </>
        }
        tip={blocked > 0 ? sayBlocked(rows) : undefined}
      />
      <Figure value={queue ? formatCount(queue.gpus_asked) : MISSING} label="GPUs asked for" />
      <Figure
        value={formatDuration(queue?.longest_wait_s)}
        label="longest wait"
        tip="Show the one that waits longest"
        isDisabled={longest === null}
        onClick={() => longest && change(select({ kind: "workload", key: longest.workload }))}
      />
      <Figure
        value={queue?.drained_at ? formatAgo(queue.drained_at, queue.at) : MISSING}
        label="all have likely started"
        tip={
          queue?.drained_at
            ? `The last one that waits for room likely starts ${formatInstant(queue.drained_at, queue.at)}`
            : undefined
        }
      />
      {queue && <ReservationFigure reservations={queue.reservations} nowMs={queue.at} />}
      {queue && !queue.is_learned && rows.length > 0 && (
        <div
          className={styles.note}
          data-tip="Until 200 jobs of this cluster have ended, any share of a limit is as likely as another"
        >
          run times are not learned yet
        </div>
      )}
    </Strip>
  );
}
