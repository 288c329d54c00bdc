// What users do: how much they repeat, what they submit when many wait, and who loses most to unsuccessful jobs.

import type { TraceDescription } from "../../../api/generated.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import { IntervalRows } from "../../../charts/interval-rows.tsx";
import { durationScale, linearScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { XyChart } from "../../../charts/xy-chart.tsx";
import { ChartCard } from "../../../parts/charts/chart-card.tsx";
import styles from "./history.module.css";
import { barOf, sayMeasured, sayRange, sayUnits } from "./words.ts";

interface Traces {
  readonly traces: readonly TraceDescription[];
}

export function UserCards({ traces }: Traces) {
  return (
    <>
      <Repetition traces={traces} />
      <WhenQueueIsLong traces={traces} />
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
      hint="share of jobs in a user's largest groups of the same size and a run time within 10 %"
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
        <p className={styles.missing}>The trace does not say whose jobs they are.</p>
      )}
    </ChartCard>
  );
}

function WhenQueueIsLong({ traces }: Traces) {
  const all = traces.flatMap((trace, place) =>
    (trace.users.submission?.thirds ?? []).map((third) => ({ trace, place, third })),
  );
  const longest = Math.max(60, ...all.map(({ third }) => third.median_run_s ?? 0));
  return (
    <ChartCard
      title="What is submitted when many wait"
      hint="median run time of the jobs that found so many waiting"
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
          label="What is submitted when many wait"
          scale={durationScale(1, longest * 2)}
          groups={all.map(({ trace, place, third }) => ({
            key: `${trace.name} ${third.low}`,
            title: `${sayRange(third.low, third.high, formatCount)} waiting`,
            detail: `${traces.length > 1 ? `${trace.name}, ` : ""}mean ${sayUnits(Math.round(third.mean_size_units * 10) / 10, trace.size_unit)}`,
            rows: [
              {
                key: "run",
                color: colorAt(place),
                title: trace.name,
                dot: third.median_run_s,
                bar: third.median_run_s === null ? null : ([1, third.median_run_s] as const),
                text: formatDuration(third.median_run_s),
                tip: `${trace.name}: ${formatCount(third.jobs)} jobs, median run ${formatDuration(third.median_run_s)}, mean size ${third.mean_size_units.toFixed(1)}`,
              },
            ],
          }))}
        />
      ) : (
        <p className={styles.missing}>The trace has no waits.</p>
      )}
    </ChartCard>
  );
}

const SHOWN_USERS = 8;

function Losses({ traces }: Traces) {
  const all = traces.flatMap((trace, place) => (trace.failures?.users ?? []).map((user) => ({ trace, place, user })));
  const shown = all.toSorted((a, b) => b.user.lost_unit_hours - a.user.lost_unit_hours).slice(0, SHOWN_USERS);
  return (
    <ChartCard
      title="Who loses most"
      hint="share of a user's jobs that ended unsuccessfully, most unit-hours lost first"
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
          label="Who loses most"
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
                bar: barOf(user.unsuccessful),
                text: formatRatio(user.unsuccessful.value),
                tip: `${user.user} of ${trace.name}: ${sayMeasured(user.unsuccessful)} of ${formatCount(user.jobs)} jobs unsuccessful`,
              },
            ],
          }))}
        />
      ) : (
        <p className={styles.missing}>The trace does not say it.</p>
      )}
    </ChartCard>
  );
}
