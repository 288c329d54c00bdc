// A likely start on the axis that all rows share: the interval as a bar, the median as a dot, the latest start by time limits as
// a tick, the scheduler's estimate as a diamond.

import { useRef } from "react";
import type { LikelyStart } from "../../../api/generated.ts";
import { formatShortDuration } from "../../../base/time.ts";
import { useSize } from "../../../charts/canvas.tsx";
import styles from "./start-bar.module.css";
import { fitTicks, type StartAxis } from "./words.ts";

interface StartBarProps {
  readonly axis: StartAxis;
  readonly likely: LikelyStart | null;
  readonly plannedAt: number | null;
  readonly schedulerAt?: number | null;
}

export function StartBar({ axis, likely, plannedAt, schedulerAt = null }: StartBarProps) {
  const text = describeStart(axis, likely, plannedAt, schedulerAt);
  const percent = (atMs: number) => `${axis.place(atMs) * 100}%`;
  return (
    <span className={styles.bar} role="img" aria-label={text} data-tip={text}>
      {axis.ticks.map(({ atMs }) => (
        <i key={atMs} className={styles.grid} style={{ left: percent(atMs) }} />
      ))}
      {likely && (
        <>
          <i
            className={styles.interval}
            style={{
              left: percent(likely.from_at),
              width: `calc(${percent(likely.to_at)} - ${percent(likely.from_at)})`,
            }}
          />
          <i className={styles.middle} style={{ left: percent(likely.likely_at) }} />
        </>
      )}
      {plannedAt !== null && <i className={styles.plan} style={{ left: percent(plannedAt) }} />}
      {schedulerAt !== null && <i className={styles.scheduler} style={{ left: percent(schedulerAt) }} />}
    </span>
  );
}

/** The ticks of the axis that have room, for the heading above the bars. */
export function StartScale({ axis }: { axis: StartAxis }) {
  const place = useRef<HTMLSpanElement>(null);
  const { width } = useSize(place);
  return (
    <span ref={place} className={styles.scale} aria-hidden="true">
      <i style={{ left: 0 }}>now</i>
      {fitTicks(axis, width).map(({ atMs, title }) => (
        <i key={atMs} style={{ left: `${axis.place(atMs) * 100}%` }}>
          {title}
        </i>
      ))}
    </span>
  );
}

export function describeStart(
  axis: StartAxis,
  likely: LikelyStart | null,
  plannedAt: number | null,
  schedulerAt: number | null = null,
): string {
  const formatWait = (atMs: number) => formatShortDuration((atMs - axis.nowMs) / 1000);
  const parts = [];
  if (likely) {
    parts.push(
      `likely in ${formatWait(likely.likely_at)}; ${Math.round(likely.level * 100)} %: in ${formatWait(likely.from_at)} to ${formatWait(likely.to_at)}`,
    );
  }
  if (plannedAt !== null) parts.push(`latest start in ${formatWait(plannedAt)}`);
  if (schedulerAt !== null) parts.push(`scheduler's estimate: in ${formatWait(schedulerAt)}`);
  return parts.length > 0 ? parts.join("; ") : "no start planned";
}
