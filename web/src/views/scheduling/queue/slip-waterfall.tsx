// Waterfall chart of a promised start: a bar for each slip; the slips add up to the whole delay.

import type { PromiseStory } from "../../../api/generated.ts";
import { formatInstant } from "../../../base/time.ts";
import { useNow } from "../../../widgets/clock-context.ts";
import styles from "./story.module.css";
import { formatChange } from "./words.ts";

const MAX_SHOWN = 12;

export interface Step {
  /** Seconds from the first promise. */
  readonly from: number;
  readonly to: number;
}

/** Each slip begins where the previous one ended. */
export function toSteps(changes: readonly number[]): readonly Step[] {
  let at = 0;
  return changes.map((change) => {
    const from = at;
    at += change;
    return { from, to: at };
  });
}

export function SlipWaterfall({ promise }: { promise: PromiseStory }) {
  const now = useNow();
  const steps = toSteps(promise.slips.map(({ change_s }) => change_s));
  const low = Math.min(0, ...steps.map(({ to }) => to));
  const high = Math.max(1, ...steps.map(({ to }) => to));
  const place = (at: number) => ((at - low) / (high - low)) * 100;
  const end = promise.started_at ?? promise.last_at;
  const skipped = Math.max(0, steps.length - MAX_SHOWN);
  return (
    <div className={styles.slips}>
      <p>
        Latest start first planned for <strong>{formatInstant(promise.first_at, now)}</strong>
        {promise.is_schedulers ? " by the scheduler" : ""}, {promise.started_at === null ? "now for" : "started"}{" "}
        <strong>{formatInstant(end, now)}</strong>
        {promise.slips.length > 0 ? `: ${formatChange(promise.slipped_s)}.` : "; it has not moved."}
      </p>
      {skipped > 0 && <p className={styles.hint}>{skipped} earlier slips are not shown.</p>}
      <ol>
        {promise.slips.slice(skipped).map((slip, index) => {
          const step = steps[skipped + index] ?? { from: 0, to: 0 };
          const [left, right] = [Math.min(step.from, step.to), Math.max(step.from, step.to)];
          return (
            <li
              key={`${slip.at} ${slip.cause} ${slip.change_s}`}
              data-tip={slip.by.length > 0 ? `${slip.words}: ${slip.by.join(", ")}` : slip.words}
            >
              <span>
                {slip.words}
                {slip.by.length > 0 && <small> {slip.by.join(", ")}</small>}
              </span>
              <b>{formatChange(slip.change_s)}</b>
              <i>
                <em
                  data-later={slip.change_s > 0 || undefined}
                  style={{ left: `${place(left)}%`, width: `${Math.max(1, place(right) - place(left))}%` }}
                />
              </i>
            </li>
          );
        })}
      </ol>
    </div>
  );
}
