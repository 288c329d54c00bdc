// What would have been enough next time, and how past jobs of the same name went.

import type { JobCard, JobCardAdvice } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import { formatExact } from "../../base/time.ts";
import { nativeId } from "../../base/workload-id.ts";
import styles from "./job.module.css";
import { describeSaving, describeState, formatClock, formatPercent, formatSize } from "./words.ts";

export function Advice({ card }: { card: JobCard }) {
  if (card.advice.length === 0) return null;
  return (
    <section aria-label="Next time">
      <h2>Next time</h2>
      <ul className={styles.advice}>
        {card.advice.map((piece) => (
          <Piece key={piece.kind} piece={piece} />
        ))}
      </ul>
    </section>
  );
}

function Piece({ piece }: { piece: JobCardAdvice }) {
  const facts = describeSaving(piece);
  return (
    <li>
      <code>{piece.option}</code>
      <span>
        {piece.text}
        {facts.length > 0 && <small>{facts.join(" · ")}</small>}
      </span>
    </li>
  );
}

export function Similar({ card }: { card: JobCard }) {
  const { similar } = card;
  if (similar === null) return null;
  return (
    <section aria-label="Similar jobs">
      <h2>Similar jobs</h2>
      <p className={styles.similar}>
        {formatPlural(similar.count, "past job")} of this name, {similar.completed} completed. Run time{" "}
        {formatClock(similar.median_run_s)} (median), {formatClock(similar.longest_run_s)} (longest).
      </p>
      <table className={styles.nodes}>
        <thead>
          <tr>
            <th scope="col">Job</th>
            <th scope="col">Ended</th>
            <th scope="col">State</th>
            <th scope="col">Run time</th>
            {card.gpus > 0 && <th scope="col">GPU utilization</th>}
            <th scope="col">Memory used on a node</th>
          </tr>
        </thead>
        <tbody>
          {similar.latest.map((job) => (
            <tr key={job.workload}>
              <th scope="row">
                <a href={`/job/${encodeURIComponent(card.cluster)}/${encodeURIComponent(nativeId(job.workload))}`}>
                  {nativeId(job.workload)}
                </a>
              </th>
              <td>{formatExact(job.ended_at)}</td>
              <td>{describeState(job.state)}</td>
              <td>{formatClock(job.run_s)}</td>
              {card.gpus > 0 && <td>{formatPercent(job.gpu_util_ratio)}</td>}
              <td>{formatSize(job.memory_peak_bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
