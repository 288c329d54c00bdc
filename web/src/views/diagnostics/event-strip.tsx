// What happened, on the axis of time: spans for what lasted, marks for what came and went. Each says what it is, to who points at
// it and to who comes by keys: Tab reaches the strip, arrows go from event to event.

import { type KeyboardEvent, useRef, useState } from "react";
import type { WorkloadEvent } from "../../api/generated.ts";
import { formatExact } from "../../base/time.ts";
import styles from "./event-strip.module.css";

const MOST = 80;
const LANES = 3;

export function EventStrip(props: { events: readonly WorkloadEvent[]; startMs: number; endMs: number }) {
  const { events, startMs, endMs } = props;
  const shown = events.filter(({ at, until }) => (until ?? at) >= startMs && at <= endMs).slice(0, MOST);
  const [held, setHeld] = useState(0);
  const [isFocused, setFocused] = useState(false);
  const list = useRef<HTMLOListElement>(null);
  const percent = (ms: number) => Math.min(100, Math.max(0, ((ms - startMs) / Math.max(1, endMs - startMs)) * 100));
  const lasting = shown.filter(({ kind }) => kind === "violation");
  const current = Math.min(held, shown.length - 1);
  const move = (event: KeyboardEvent) => {
    const next = stepThrough(event.key, current, shown.length);
    if (next === null) return;
    event.preventDefault();
    setHeld(next);
    list.current?.querySelectorAll("button")[next]?.focus();
  };
  const left = events.length - shown.length;
  return (
    <div className={styles.place}>
      <ol
        ref={list}
        className={styles.strip}
        aria-label={`Events${left > 0 ? `, ${shown.length} of ${events.length}` : ""}; arrows go from one to the next`}
        onFocus={() => setFocused(true)}
        onBlur={() => setFocused(false)}
        onKeyDown={move}
      >
        {shown.map((event, at) => {
          const lane = lasting.indexOf(event) % LANES;
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
                aria-label={sayEvent(event)}
                data-tip={sayEvent(event)}
                onClick={() => setHeld(at)}
                onFocus={() => setHeld(at)}
              />
            </li>
          );
        })}
      </ol>
      {isFocused && shown.length > 0 && (
        // What it is stands in its tip, which focus opens as pointing does.
        <output className={styles.label}>
          event {current + 1} of {shown.length}
        </output>
      )}
    </div>
  );
}

export function sayEvent({ at, until, text, unit }: WorkloadEvent): string {
  const when = until === null ? formatExact(at) : `${formatExact(at)} – ${formatExact(until)}`;
  return `${when}: ${text}${unit !== null && !text.includes(unit) ? ` (${unit})` : ""}`;
}

/** Where a key leads from one of `count` events; null: nowhere. */
export function stepThrough(key: string, from: number, count: number): number | null {
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
