// User behavior: repeated jobs, what is submitted by queue length, run times by status, and users with most lost unit-hours.

import type { QueueThird, TraceDescription } from "../../../api/generated.ts";
import { formatCount, formatRatio, MISSING } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import { IntervalRows } from "../../../charts/interval-rows.tsx";
import { durationScale, linearScale, type Scale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { XyChart } from "../../../charts/xy-chart.tsx";
import { ChartCard, sayNumber } from "../../../parts/charts/chart-card.tsx";
import styles from "./history.module.css";
import { formatMeasured, formatRange, nameUnit, nameUnits, toInterval } from "./words.ts";

interface Traces {
  readonly traces: readonly TraceDescription[];
}

export function UserCards({ traces }: Traces) {
  return (
    <>
      <Repetition traces={traces} />
      <QueueThirds
        title="Run time by queue length"
        hint="median run time, by the number of jobs waiting at submission"
        traces={traces}
        scale={(maximum) => durationScale(1, Math.max(60, maximum) * 2)}
        pick={(third) => third.median_run_s}
        format={formatDuration}
      />
      <QueueThirds
        title="Size by queue length"
        hint={`mean size in ${nameUnits(traces)}, by the number of jobs waiting at submission`}
        traces={traces}
        scale={(largest) => linearScale(0, Math.max(1, largest) * 1.1, 5, formatCount)}
        pick={(third) => third.mean_size_units}
        format={(size, { size_unit }) => (size === null ? MISSING : `${sayNumber(size)} ${nameUnit(size_unit)}`)}
      />
      <RunTimeByStatus traces={traces} />
      <Losses traces={traces} />
    </>
  );
}

function Repetition({ traces }: Traces) {
  const series = traces.flatMap(({ name, users }, place) =>
    users.repetition
      ? [
          {
            key: name,
            title: name,
            color: colorAt(place),
            look: "line" as const,
            xs: users.repetition.cover.map((_, at) => at + 1),
            ys: users.repetition.cover,
          },
        ]
      : [],
  );
  return (
    <ChartCard
      title="Repeated jobs"
      hint={`share of jobs in a user's largest groups of the same size and a run time within 10 %${describeTopTen(traces)}`}
      twin={{
        header: ["trace", "largest groups", "share of jobs"],
        rows: series.flatMap(({ title, xs, ys }) => xs.map((count, at) => [title, count, ys[at]])),
      }}
    >
      {series.length > 0 ? (
        <XyChart
          label="Repeated jobs"
          x={linearScale(1, 10, 9, formatCount)}
          y={linearScale(0, 1, 5, formatRatio)}
          xTitle="largest groups of each user"
          yTitle="share of jobs"
          series={series}
        />
      ) : (
        <p className={styles.missing}>The trace has no users.</p>
      )}
    </ChartCard>
  );
}

/** The share of the ten largest groups, with its interval. */
function describeTopTen(traces: readonly TraceDescription[]): string {
  const shares = traces.flatMap(({ name, users }) =>
    users.repetition ? [`${traces.length > 1 ? `${name} ` : ""}${formatMeasured(users.repetition.top_10_cover)}`] : [],
  );
  return shares.length > 0 ? `; in the ten largest: ${shares.join("; ")}` : "";
}

interface QueueThirdsProps extends Traces {
  readonly title: string;
  readonly hint: string;
  readonly scale: (highest: number) => Scale;
  pick(third: QueueThird): number | null;
  format(value: number | null, trace: TraceDescription): string;
}

/** A measure of the jobs submitted to a short, a medium and a long queue. */
function QueueThirds({ traces, title, hint, scale, pick, format }: QueueThirdsProps) {
  const all = traces.flatMap((trace, place) =>
    (trace.users.submission?.thirds ?? []).map((third) => ({ trace, place, third, value: pick(third) })),
  );
  return (
    <ChartCard
      title={title}
      hint={hint}
      twin={{
        header: [
          "trace",
          "waiting from",
          "to",
          "jobs",
          "median size",
          "mean size",
          "median run, s",
          "median request, s",
        ],
        rows: all.map(({ trace, third }) => [
          trace.name,
          third.low,
          third.high,
          third.jobs,
          third.median_size_units,
          third.mean_size_units,
          third.median_run_s,
          third.median_requested_s,
        ]),
      }}
    >
      {all.length > 0 ? (
        <IntervalRows
          label={title}
          scale={scale(Math.max(0, ...all.map(({ value }) => value ?? 0)))}
          groups={all.map(({ trace, place, third, value }) => ({
            key: `${trace.name} ${third.low}`,
            title: `${formatRange(third.low, third.high, formatCount)} waiting`,
            detail: traces.length > 1 ? trace.name : `${formatCount(third.jobs)} jobs`,
            rows: [
              {
                key: "value",
                color: colorAt(place),
                title: trace.name,
                dot: value,
                bar: value === null ? null : ([0, value] as const),
                text: format(value, trace),
                tip: `${trace.name}: ${formatCount(third.jobs)} jobs, median run ${formatDuration(third.median_run_s)}, mean size ${third.mean_size_units.toFixed(1)}`,
              },
            ],
          }))}
        />
      ) : (
        <p className={styles.missing}>The trace has no wait times.</p>
      )}
    </ChartCard>
  );
}

function RunTimeByStatus({ traces }: Traces) {
  const all = traces.flatMap((trace, place) =>
    trace.users.run_time_by_status.map((row) => ({ trace, place, row, ratio: row.ratio_to_completed })),
  );
  const maximum = Math.max(60, ...all.map(({ row }) => row.median_run_s));
  return (
    <ChartCard
      title="Run time by status"
      hint="median; compared with a user's completed jobs: median over users, 95 % interval"
      twin={{
        header: ["trace", "status", "jobs", "users", "median run, s", "÷ completed", "low", "high"],
        rows: all.map(({ trace, row, ratio }) => [
          trace.name,
          row.status,
          row.jobs,
          row.users,
          row.median_run_s,
          ratio?.value,
          ratio?.low,
          ratio?.high,
        ]),
      }}
    >
      {all.length > 0 ? (
        <IntervalRows
          label="Run time by status"
          scale={durationScale(1, maximum * 1.5)}
          groups={all.map(({ trace, place, row, ratio }) => {
            const compared = ratio === null ? null : `${formatMeasured(ratio, formatFactor)} completed ones`;
            return {
              key: `${trace.name} ${row.status}`,
              title: row.status,
              detail: [traces.length > 1 ? trace.name : null, compared].filter(Boolean).join(", "),
              rows: [
                {
                  key: "run",
                  color: colorAt(place),
                  title: trace.name,
                  dot: row.median_run_s,
                  bar: [1, row.median_run_s] as const,
                  text: formatDuration(row.median_run_s),
                  tip: `${trace.name}: ${formatCount(row.jobs)} jobs ${row.status}, median run ${formatDuration(row.median_run_s)}${compared ? `, ${compared}` : ""}`,
                },
              ],
            };
          })}
        />
      ) : (
        <p className={styles.missing}>The trace has no job states.</p>
      )}
    </ChartCard>
  );
}

function formatFactor(ratio: number): string {
  return `${ratio.toFixed(2)}×`;
}

const SHOWN_USERS = 8;

function Losses({ traces }: Traces) {
  const all = traces.flatMap((trace, place) => (trace.failures?.users ?? []).map((user) => ({ trace, place, user })));
  const shown = all.toSorted((a, b) => b.user.lost_unit_hours - a.user.lost_unit_hours).slice(0, SHOWN_USERS);
  return (
    <ChartCard
      title="Users with most lost unit-hours"
      hint="share of a user's jobs that ended unsuccessfully; most lost unit-hours first"
      twin={{
        header: ["trace", "user", "jobs", "unsuccessful", "low", "high", "unit-hours lost"],
        rows: all.map(({ trace, user }) => [
          trace.name,
          user.user,
          user.jobs,
          user.unsuccessful.value,
          user.unsuccessful.low,
          user.unsuccessful.high,
          user.lost_unit_hours,
        ]),
      }}
    >
      {shown.length > 0 ? (
        <IntervalRows
          label="Users with most lost unit-hours"
          scale={linearScale(0, 1, 5, formatRatio)}
          groups={shown.map(({ trace, place, user }) => ({
            key: `${trace.name} ${user.user}`,
            title: user.user,
            detail: `${traces.length > 1 ? `${trace.name}, ` : ""}${formatCount(user.lost_unit_hours)} unit-hours`,
            rows: [
              {
                key: "share",
                color: colorAt(place),
                title: user.user,
                dot: user.unsuccessful.value,
                bar: toInterval(user.unsuccessful),
                text: formatRatio(user.unsuccessful.value),
                tip: `${user.user} of ${trace.name}: ${formatMeasured(user.unsuccessful)} of ${formatCount(user.jobs)} jobs unsuccessful`,
              },
            ],
          }))}
        />
      ) : (
        <p className={styles.missing}>The trace does not contain this.</p>
      )}
    </ChartCard>
  );
}
