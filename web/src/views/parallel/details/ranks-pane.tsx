// Time by rank, pipeline stages, critical path, what-ifs, and the accuracy of clocks and matching.

import type { TraceAnswer, TraceReportAnswer } from "../../../api/generated.ts";
import { classNames } from "../../../base/class-names.ts";
import { formatPlural, formatRatio } from "../../../base/format.ts";
import { formatSeconds } from "../graph/axis.ts";
import { KIND_COLORS } from "../graph/kinds.ts";
import styles from "./details.module.css";

const PARTS = [
  ["compute_s", "compute", KIND_COLORS.forward],
  ["waiting_s", "exposed waiting", KIND_COLORS.waiting],
  ["transferring_s", "exposed transfer", KIND_COLORS.communication],
  ["idle_s", "idle", "var(--track)"],
] as const;

/** Shown parts of a critical path. */
const MAX_PARTS = 16;

export function RanksPane({ answer, report }: { answer: TraceAnswer; report: TraceReportAnswer }) {
  return (
    <div className={styles.scroll}>
      <RankSections answer={answer} report={report} />
    </div>
  );
}

export function RankSections({ answer, report }: { answer: TraceAnswer; report: TraceReportAnswer }) {
  const stages = new Map(answer.ranks.map(({ rank, stage }) => [rank, stage]));
  const units = new Map(answer.ranks.map(({ rank, unit }) => [rank, unit]));
  const slack = new Map(report.slack.map((rankSlack) => [rankSlack.rank, rankSlack]));
  return (
    <>
      <section>
        <h2>Mean step by rank</h2>
        <table className={styles.ranks}>
          <thead>
            <tr>
              <th scope="col">Rank</th>
              <th scope="col" className={styles.share}>
                compute · wait · transfer · idle
              </th>
              <th scope="col">Compute</th>
              <th scope="col" data-tip="Time that other ranks waited for it, per step">
                Slack
              </th>
              <th scope="col" data-tip="How often it arrived last at a collective">
                Last
              </th>
            </tr>
          </thead>
          <tbody>
            {report.breakdown.map((row) => (
              <tr key={row.rank}>
                <th scope="row" data-tip={units.get(row.rank) ?? undefined}>
                  {row.rank}
                  {stages.get(row.rank) !== null && <small> stage {stages.get(row.rank)}</small>}
                </th>
                <td>
                  <span className={styles.bar}>
                    {PARTS.map(([key, title, color]) => (
                      <i
                        key={key}
                        style={{ width: `${(row[key] / Math.max(1e-12, row.step_s)) * 100}%`, background: color }}
                        data-tip={`${title} ${formatSeconds(row[key])}, ${formatRatio(row[key] / row.step_s)}`}
                      />
                    ))}
                  </span>
                </td>
                <td>{formatSeconds(row.compute_s)}</td>
                <td>{formatSeconds(slack.get(row.rank)?.slack_s ?? null)}</td>
                <td>{slack.has(row.rank) ? `${slack.get(row.rank)?.last_times}×` : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <Stages report={report} />
      <CriticalPath report={report} />
      <WhatIf report={report} />
      <section>
        <h2>Accuracy</h2>
        <p>{describeAlignment(report)}</p>
        <p>
          {formatPlural(report.collectives.matched, "collective")} and{" "}
          {formatPlural(report.collectives.messages, "message")} matched across ranks
          {report.collectives.unmatched_spans > 0 && `, ${report.collectives.unmatched_spans} spans unmatched`}.
          {report.collectives.last_arrivers.length > 0 &&
            ` Last to arrive: ${report.collectives.last_arrivers
              .slice(0, 4)
              .map(({ rank, times }) => `rank ${rank} ×${times}`)
              .join(", ")}.`}
        </p>
        {answer.row.notes.map((note) => (
          <p key={note}>{note}</p>
        ))}
      </section>
    </>
  );
}

function Stages({ report: { bubble } }: { report: TraceReportAnswer }) {
  if (bubble === null) return null;
  return (
    <section>
      <h2>Pipeline</h2>
      <table className={styles.ranks}>
        <thead>
          <tr>
            <th scope="col">Stage</th>
            <th scope="col">Compute</th>
            <th scope="col" data-tip="Share of the pipeline's time in which the stage is idle">
              Bubble
            </th>
          </tr>
        </thead>
        <tbody>
          {bubble.stage_compute_s.map((compute, stage) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a stage is its number
            <tr key={stage}>
              <th scope="row">{stage}</th>
              <td>{formatSeconds(compute)}</td>
              <td>{formatRatio(bubble.stage_bubble_ratio[stage])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function CriticalPath({ report }: { report: TraceReportAnswer }) {
  const path = report.critical_path;
  if (path === null) return null;
  return (
    <section>
      <h2>Critical path of step {path.step}</h2>
      <table className={styles.ranks}>
        <tbody>
          {path.parts.slice(0, MAX_PARTS).map(({ rank, kind, length_s }) => (
            <tr key={`${rank} ${kind}`}>
              <th scope="row">
                rank {rank} {kind}
              </th>
              <td>{formatSeconds(length_s)}</td>
              <td>{formatRatio(length_s / Math.max(1e-12, path.length_s))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function WhatIf({ report }: { report: TraceReportAnswer }) {
  if (report.what_if.length === 0) return null;
  return (
    <section>
      <h2>What if</h2>
      <table className={classNames(styles.ranks, styles.questions)}>
        <tbody>
          {report.what_if.map(({ question, now_s, then_s, speed_up }) => (
            <tr key={question}>
              <th scope="row">{question}</th>
              <td>
                {formatSeconds(now_s)} → {formatSeconds(then_s)}
              </td>
              <td>{speed_up === null ? "–" : `${speed_up.toFixed(2)}×`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function describeAlignment({ alignment }: TraceReportAnswer): string {
  const corrected = alignment.clocks.filter(({ offset_s, drift_ppm }) => offset_s !== 0 || drift_ppm !== 0);
  const maxOffset = Math.max(0, ...corrected.map(({ offset_s }) => Math.abs(offset_s)));
  const correction =
    corrected.length === 0
      ? "No clock was corrected."
      : `${corrected.length} clocks were corrected, by up to ${formatSeconds(maxOffset)}.`;
  return alignment.error_s === null
    ? `${correction} The clock error is unknown.`
    : `${correction} They agree to within ${formatSeconds(alignment.error_s)}; smaller differences are not reported.`;
}
