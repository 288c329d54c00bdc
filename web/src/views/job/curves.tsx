// Curves over the job's life, each marked as of the job alone or of its whole nodes.

import type { JobCard, JobCurve } from "../../api/generated.ts";
import { isKnown } from "../../base/format.ts";
import { Sparkline } from "../../charts/sparkline.tsx";
import styles from "./job.module.css";
import { describePeak } from "./words.ts";

export function Curves({ card }: { card: JobCard }) {
  if (card.curves.length === 0) return null;
  const endMs = card.ended_at ?? card.started_at + card.run_s * 1000;
  return (
    <section aria-label="Over time">
      <h2>Over time</h2>
      <div className={styles.curves}>
        {card.curves.map((curve) => (
          <Curve key={curve.name} curve={curve} startMs={card.started_at} endMs={endMs} />
        ))}
      </div>
    </section>
  );
}

function Curve({ curve, startMs, endMs }: { curve: JobCurve; startMs: number; endMs: number }) {
  const points = curve.values.flatMap((value, step) =>
    isKnown(value) ? [{ timeMs: curve.start + (step + 0.5) * curve.step_ms, value }] : [],
  );
  const times = Float64Array.from(points, ({ timeMs }) => Math.min(endMs, Math.max(startMs, timeMs)));
  const values = Float64Array.from(points, ({ value }) => value);
  const top = curve.most ?? Math.max(...values);
  return (
    <figure className={styles.curve}>
      <figcaption>
        <b>{curve.label}</b>
        <span>{describePeak(curve)}</span>
        {curve.subject === "node" && <em data-tip="Includes whatever else ran on its nodes">whole node</em>}
      </figcaption>
      <Sparkline
        label={`${curve.label} over the life of the job, ${describePeak(curve)}`}
        timesMs={times}
        values={values}
        minima={new Float64Array(values.length)}
        maxima={values}
        startMs={startMs}
        endMs={endMs}
        top={top}
        color={curve.subject === "node" ? "var(--muted)" : "var(--accent)"}
        height={44}
      />
    </figure>
  );
}
