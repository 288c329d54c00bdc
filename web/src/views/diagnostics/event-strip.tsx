// Events on the time axis: spans for violations, marks for other events, each with a tooltip. Tab reaches the strip, arrow keys
// move between events.

import { type KeyboardEvent, useRef, useState } from "react";
import type { WorkloadEvent } from "../../api/generated.ts";
import { formatExact } from "../../base/time.ts";
import styles from "./event-strip.module.css";

const MAX_EVENTS = 80;
const LANES = 3;

export function EventStrip(props: { events: readonly WorkloadEvent[]; startMs: number; endMs: number }) {
  const { events, startMs, endMs } = props;
  const shown = events.filter(({ at, until }) => (until ?? at) >= startMs && at <= endMs).slice(0, MAX_EVENTS);
  const [focused, setFocusedEvent] = useState(0);
  const [isFocused, setFocused] = useState(false);
  const list = useRef<HTMLOListElement>(null);
  const percent = (ms: number) => Math.min(100, Math.max(0, ((ms - startMs) / Math.max(1, endMs - startMs)) * 100));
  const violations = shown.filter(({ kind }) => kind === "violation");
  const current = Math.min(focused, shown.length - 1);
  const move = (event: KeyboardEvent) => {
    const next = moveFocus(event.key, current, shown.length);
    if (next === null) return;
    event.preventDefault();
    setFocusedEvent(next);
    list.current?.querySelectorAll("button")[next]?.focus();
  };
  const hidden = events.length - shown.length;
  return (
    <div className={styles.place}>
      <ol
        ref={list}
        className={styles.strip}
        aria-label={`Events${hidden > 0 ? `, ${shown.length} of ${events.length}` : ""}; arrow keys move between them`}
        onFocus={() => setFocused(true)}
        onBlur={() => setFocused(false)}
        onKeyDown={move}
      >
        {shown.map((event, at) => {
          const lane = violations.indexOf(event) % LANES;
          const from = percent(event.at);
          const isSpan = event.kind === "violation";
          const to = isSpan ? percent(event.until ?? endMs) : from;
          return (
            <li
              key={`${event.kind} ${event.at} ${event.unit} ${event.text}`}
              data-kind={event.kind}
              style={{ left: `${from}%`, ...(isSpan ? { width: `${to - from}%`, top: lane * 5 } : {}) }}
            >
              <button
                type="button"
                tabIndex={at === current ? 0 : -1}
                aria-label={describeEvent(event)}
                data-tip={describeEvent(event)}
                onClick={() => setFocusedEvent(at)}
                onFocus={() => setFocusedEvent(at)}
              />
            </li>
          );
        })}
      </ol>
      {isFocused && shown.length > 0 && (
        // The tooltip, which also opens on focus, describes the event.
        <output className={styles.label}>
          event {current + 1} of {shown.length}
        </output>
      )}
    </div>
  );
}

export function describeEvent({ at, until, text, unit }: WorkloadEvent): string {
  const when = until === null ? formatExact(at) : `${formatExact(at)} – ${formatExact(until)}`;
  return `${when}: ${text}${unit !== null && !text.includes(unit) ? ` (${unit})` : ""}`;
}

/** The index that a key moves to among `count` events; null: none. */
export function moveFocus(key: string, from: number, count: number): number | null {
  if (count === 0) return null;
  const to = {
    ArrowLeft: from - 1,
    ArrowUp: from - 1,
    ArrowRight: from + 1,
    ArrowDown: from + 1,
    Home: 0,
    End: count - 1,
  }[key];
  return to === undefined ? null : Math.max(0, Math.min(count - 1, to));
}
