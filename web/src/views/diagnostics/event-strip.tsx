// What happened, on the axis of time: spans for what lasted, marks for what came and went. Each says what it is.

import type { WorkloadEvent } from "../../api/generated.ts";
import { formatExact } from "../../base/time.ts";
import styles from "./event-strip.module.css";

const MOST = 80;

export function EventStrip(props: { events: readonly WorkloadEvent[]; startMs: number; endMs: number }) {
  const { events, startMs, endMs } = props;
  const shown = events.filter(({ at, until }) => (until ?? at) >= startMs && at <= endMs).slice(0, MOST);
  const percent = (ms: number) => Math.min(100, Math.max(0, ((ms - startMs) / Math.max(1, endMs - startMs)) * 100));
  const lasting = shown.filter(({ kind }) => kind === "violation");
  return (
    <ol className={styles.strip} aria-label="Events">
      {shown.map((event) => {
        const lane = lasting.indexOf(event) % 3;
        const left = percent(event.at);
        const isSpan = event.kind === "violation";
        const right = isSpan ? percent(event.until ?? endMs) : left;
        return (
          <li
            key={`${event.kind} ${event.at} ${event.unit} ${event.text}`}
            data-kind={event.kind}
            data-tip={`${formatExact(event.at)}: ${event.text}`}
            style={{ left: `${left}%`, ...(isSpan ? { width: `${right - left}%`, top: lane * 5 } : {}) }}
          >
            <span>{`${formatExact(event.at)}: ${event.text}`}</span>
          </li>
        );
      })}
    </ol>
  );
}
