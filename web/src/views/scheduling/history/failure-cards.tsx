// How jobs end, and whether larger and longer ones end badly more often; shares with their 95 % intervals.

import type { ClassEnds, TraceDescription } from "../../../api/generated.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { formatShortDuration } from "../../../base/time.ts";
import { IntervalRows } from "../../../charts/interval-rows.tsx";
import { linearScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { ChartCard } from "../../../parts/charts/chart-card.tsx";
import styles from "./history.module.css";
import { barOf, sayMeasured, sayRange, sayUnits } from "./words.ts";

const STATUSES = ["completed", "failed", "cancelled", "timeout"] as const;
const TITLES = { completed: "completed", failed: "failed", cancelled: "cancelled", timeout: "out of time" };

export function FailureCards({ traces }: { traces: readonly TraceDescription[] }) {
  return (
    <>
      <Statuses traces={traces} />
      <ByClass
        title="Unsuccessful by size"
        traces={traces}
        pick={({ failures }) => failures?.by_size.classes ?? []}
        say={(each, trace) =>
          each.low === each.high
            ? sayUnits(each.low, trace.size_unit)
            : `${formatCount(each.low)} – ${sayUnits(each.high, trace.size_unit)}`
        }
      />
      <ByClass
        title="Unsuccessful by run time"
        traces={traces}
        pick={({ failures }) => failures?.by_run_time.classes ?? []}
        say={(each) => sayRange(each.low, each.high, formatShortDuration)}
      />
    </>
  );
}

function Statuses({ traces }: { traces: readonly TraceDescription[] }) {
  const all = traces.flatMap((trace, place) =>
    (trace.failures?.statuses ?? []).map((status) => ({ name: trace.name, place, status })),
  );
  const lost = traces
    .filter(({ failures }) => failures)
    .map(({ name, failures }) => `${traces.length > 1 ? `${name}: ` : ""}${formatRatio(failures?.lost_share)}`)
    .join("; ");
  const groups = STATUSES.map((status) => ({
    key: status,
    title: TITLES[status],
    rows: all
      .filter((each) => each.status.status === status)
      .map(({ name, place, status: { share, jobs } }) => ({
        key: name,
        color: colorAt(place),
        title: name,
        dot: share.value,
        bar: barOf(share),
        text: formatRatio(share.value),
        tip: `${name}: ${formatCount(jobs)} jobs ${TITLES[status]}, ${sayMeasured(share)}`,
      })),
  })).filter(({ rows }) => rows.length > 0);
  return (
    <ChartCard
      title="How jobs end"
      hint={lost ? `share of jobs; of all unit-hours lost to unsuccessful ones: ${lost}` : "share of jobs"}
      twin={{
        header: ["trace", "status", "jobs", "share", "low", "high", "unit-hours", "share of unit-hours"],
        rows: all.map(({ name, status }) => [
          name,
          status.status,
          status.jobs,
          status.share.value,
          status.share.low,
          status.share.high,
          status.unit_hours,
          status.unit_hours_share,
        ]),
      }}
    >
      {groups.length > 0 ? (
        <IntervalRows label="How jobs end" scale={linearScale(0, 1, 5, formatRatio)} groups={groups} />
      ) : (
        <p className={styles.missing}>The trace does not say how jobs end.</p>
      )}
    </ChartCard>
  );
}

interface ByClassProps {
  readonly title: string;
  readonly traces: readonly TraceDescription[];
  pick(trace: TraceDescription): readonly ClassEnds[];
  say(each: ClassEnds, trace: TraceDescription): string;
}

function ByClass({ title, traces, pick, say }: ByClassProps) {
  const most = Math.max(
    0.1,
    ...traces.flatMap((trace) => pick(trace).map(({ unsuccessful }) => unsuccessful.high ?? unsuccessful.value)),
  );
  const groups = traces.flatMap((trace, place) =>
    pick(trace).map((each) => ({
      key: `${trace.name} ${each.low} ${each.high}`,
      title: say(each, trace),
      detail: traces.length > 1 ? trace.name : `${formatCount(each.jobs)} jobs`,
      rows: [
        {
          key: "share",
          color: colorAt(place),
          title: trace.name,
          dot: each.unsuccessful.value,
          bar: barOf(each.unsuccessful),
          tick: each.failed.value,
          text: formatRatio(each.unsuccessful.value),
          tip: `${trace.name}, ${say(each, trace)}: ${sayMeasured(each.unsuccessful)} of ${formatCount(each.jobs)} jobs unsuccessful, ${formatRatio(each.failed.value)} failed outright`,
        },
      ],
    })),
  );
  return (
    <ChartCard
      title={title}
      hint="failed, cancelled or out of time, in thirds of the jobs; tick: failed outright"
      twin={{
        header: ["trace", "from", "to", "jobs", "unsuccessful", "low", "high", "failed"],
        rows: traces.flatMap((trace) =>
          pick(trace).map((each) => [
            trace.name,
            each.low,
            each.high,
            each.jobs,
            each.unsuccessful.value,
            each.unsuccessful.low,
            each.unsuccessful.high,
            each.failed.value,
          ]),
        ),
      }}
    >
      {groups.length > 0 ? (
        <IntervalRows label={title} scale={linearScale(0, most, 5, formatRatio)} groups={groups} />
      ) : (
        <p className={styles.missing}>The trace does not say it.</p>
      )}
    </ChartCard>
  );
}
