// What the time of each rank goes into, what a step is made of on the critical path, clocks, and what was unclear.

import type { TraceAnswer, TraceReportAnswer } from "../../../api/generated.ts";
import { classNames } from "../../../base/class-names.ts";
import { formatPlural, formatRatio } from "../../../base/format.ts";
import { saySeconds } from "../graph/axis.ts";
import { KIND_COLORS } from "../graph/kinds.ts";
import styles from "./details.module.css";

const PARTS = [
  ["compute_s", "compute", KIND_COLORS.forward],
  ["waiting_s", "exposed waiting", KIND_COLORS.waiting],
  ["transferring_s", "exposed transfer", KIND_COLORS.communication],
  ["idle_s", "idle", "var(--track)"],
] as const;

export function RanksPane({ answer, report }: { answer: TraceAnswer; report: TraceReportAnswer }) {
  const stages = new Map(answer.ranks.map(({ rank, stage }) => [rank, stage]));
  const units = new Map(answer.ranks.map(({ rank, unit }) => [rank, unit]));
  const slack = new Map(report.slack.map((each) => [each.rank, each]));
  return (
    <div className={styles.scroll}>
      <section>
        <h2>Mean step of each rank</h2>
        <table className={styles.ranks}>
          <thead>
            <tr>
              <th scope="col">Rank</th>
              <th scope="col" className={styles.share}>
                compute · wait · transfer · idle
              </th>
              <th scope="col">Compute</th>
              <th scope="col" data-tip="What others waited for it, per step">
                Slack
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
                        data-tip={`${title} ${saySeconds(row[key])}, ${formatRatio(row[key] / row.step_s)}`}
                      />
                    ))}
                  </span>
                </td>
                <td>{saySeconds(row.compute_s)}</td>
                <td>{saySeconds(slack.get(row.rank)?.slack_s ?? null)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <CriticalPath report={report} />
      <WhatIf report={report} />
      <section>
        <h2>How sure</h2>
        <p>{sayAlignment(report)}</p>
        <p>
          {formatPlural(report.collectives.matched, "collective")} and{" "}
          {formatPlural(report.collectives.messages, "message")} matched across ranks
          {report.collectives.unmatched_spans > 0 && `, ${report.collectives.unmatched_spans} spans not`}.
          {report.collectives.last_arrivers.length > 0 &&
            ` Last to come: ${report.collectives.last_arrivers
              .slice(0, 4)
              .map(({ rank, times }) => `rank ${rank} ×${times}`)
              .join(", ")}.`}
        </p>
        {answer.row.notes.map((note) => (
          <p key={note}>{note}</p>
        ))}
      </section>
    </div>
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
          {path.parts.slice(0, 8).map(({ rank, kind, length_s }) => (
            <tr key={`${rank} ${kind}`}>
              <th scope="row">
                rank {rank} {kind}
              </th>
              <td>{saySeconds(length_s)}</td>
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
                {saySeconds(now_s)} → {saySeconds(then_s)}
              </td>
              <td>{speed_up === null ? "–" : `${speed_up.toFixed(2)}×`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function sayAlignment({ alignment }: TraceReportAnswer): string {
  const moved = alignment.clocks.filter(({ offset_s, drift_ppm }) => offset_s !== 0 || drift_ppm !== 0);
  const most = Math.max(0, ...moved.map(({ offset_s }) => Math.abs(offset_s)));
  const shifted =
    moved.length === 0 ? "No clock was moved." : `${moved.length} clocks were moved, by up to ${saySeconds(most)}.`;
  return alignment.error_s === null
    ? `${shifted} How well they agree is not known.`
    : `${shifted} They agree to ${saySeconds(alignment.error_s)}; nothing smaller is named.`;
}
