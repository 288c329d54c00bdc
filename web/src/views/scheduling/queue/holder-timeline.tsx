// Workloads that hold the nodes planned for this one: bars to their time limits, dots at their likely ends.

import type { WaitingStory } from "../../../api/generated.ts";
import { MINUTE_MS } from "../../../base/durations.ts";
import { formatPlural } from "../../../base/format.ts";
import { formatInstant, formatShortDuration } from "../../../base/time.ts";
import { OpenLink } from "../../../parts/panel/panel.tsx";
import { useNow } from "../../../widgets/clock-context.ts";
import styles from "./story.module.css";
import { nativeId } from "./words.ts";

export function HolderTimeline({ story }: { story: WaitingStory }) {
  const now = useNow();
  const { holders, row } = story;
  const endMs = Math.max(story.at + MINUTE_MS, row?.planned_at ?? 0, ...holders.map(({ ends_by }) => ends_by));
  const place = (atMs: number) => `${Math.min(1, Math.max(0, (atMs - story.at) / (endMs - story.at))) * 100}%`;
  return (
    <>
      <ul className={styles.holders}>
        {holders.map((holder) => (
          <li key={holder.workload}>
            <span>
              <OpenLink kind="workload" name={holder.workload}>
                {holder.name ?? nativeId(holder.workload)}
              </OpenLink>{" "}
              {holder.user}
            </span>
            <b>{formatPlural(holder.gpus, "GPU")}</b>
            <i
              role="img"
              aria-label={`until ${formatInstant(holder.ends_by, now)} at most`}
              data-tip={`On ${holder.nodes.join(", ")}. Its limit ends it in ${formatShortDuration((holder.ends_by - story.at) / 1000)}${
                holder.likely_end_at === null
                  ? ""
                  : `; it likely ends in ${formatShortDuration((holder.likely_end_at - story.at) / 1000)}`
              }`}
            >
              <em style={{ width: place(holder.ends_by) }} />
              {holder.likely_end_at !== null && <s style={{ left: place(holder.likely_end_at) }} />}
            </i>
          </li>
        ))}
      </ul>
      <div className={styles.axis}>
        <span>now</span>
        <span>{formatInstant(endMs, now)}</span>
      </div>
      <p className={styles.hint}>Bars end at the time limits; dots mark likely ends.</p>
    </>
  );
}
