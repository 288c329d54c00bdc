// Labels of a stretch of time at round local times, from seconds to weeks.

import styles from "./time-axis.module.css";

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const STEPS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((step) => step * SECOND_MS),
  ...[1, 2, 5, 10, 15, 30].map((step) => step * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((step) => step * HOUR_MS),
  ...[1, 2, 7, 14, 28].map((step) => step * DAY_MS),
];

export interface TimeTick {
  readonly atMs: number;
  readonly text: string;
}

/** At most `most` of them. `offsetMs`: local time minus UTC. */
export function listTicks(startMs: number, endMs: number, most: number, offsetMs: number): readonly TimeTick[] {
  const wanted = (endMs - startMs) / Math.max(1, most);
  const step = STEPS_MS.find((each) => each >= wanted) ?? Math.ceil(wanted / DAY_MS) * DAY_MS;
  const ticks: TimeTick[] = [];
  for (let local = Math.ceil((startMs + offsetMs) / step) * step; local <= endMs + offsetMs; local += step) {
    ticks.push({ atMs: local - offsetMs, text: sayTick(local, step) });
  }
  return ticks;
}

/** Of a local time written as if it were UTC. */
function sayTick(localMs: number, stepMs: number): string {
  const date = new Date(localMs);
  if (stepMs >= DAY_MS || localMs % DAY_MS === 0) {
    return new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" }).format(date);
  }
  return date.toISOString().slice(11, stepMs < MINUTE_MS ? 19 : 16);
}

interface TimeAxisProps {
  readonly startMs: number;
  readonly endMs: number;
  /** Pixels. */
  readonly width: number;
}

const LABEL_PX = 84;

export function TimeAxis({ startMs, endMs, width }: TimeAxisProps) {
  const offsetMs = -new Date(startMs).getTimezoneOffset() * MINUTE_MS;
  return (
    <div className={styles.axis} aria-hidden="true">
      {listTicks(startMs, endMs, width / LABEL_PX, offsetMs).map(({ atMs, text }) => {
        const ratio = (atMs - startMs) / Math.max(1, endMs - startMs);
        // A label stands around its place: at the very ends it would be cut.
        if (ratio * width < 20 || (1 - ratio) * width < 20) return null;
        return (
          <span key={atMs} data-drawn-label={true} style={{ left: `${ratio * 100}%` }}>
            {text}
          </span>
        );
      })}
    </div>
  );
}
