// How jobs end, and whether larger and longer jobs fail more often; shares with 95 % intervals.

import type { ClassEnds, TraceDescription } from "../../../api/generated.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { formatShortDuration } from "../../../base/time.ts";
import { IntervalRows } from "../../../charts/interval-rows.tsx";
import { linearScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { ChartCard } from "../../../parts/charts/chart-card.tsx";
import styles from "./history.module.css";
import { formatMeasured, formatRange, formatUnits, toInterval } from "./words.ts";

const STATUSES = ["completed", "failed", "cancelled", "timeout"] as const;
const TITLES = { completed: "completed", failed: "failed", cancelled: "cancelled", timeout: "timed out" };

export function FailureCards({ traces }: { traces: readonly TraceDescription[] }) {
  return (
    <>
      <Statuses traces={traces} />
      <ByClass
        title="Unsuccessful by size"
        traces={traces}
        pick={({ failures }) => failures?.by_size.classes ?? []}
        format={(jobClass, trace) =>
          jobClass.low === jobClass.high
            ? formatUnits(jobClass.low, trace.size_unit)
            : `${formatCount(jobClass.low)} – ${formatUnits(jobClass.high, trace.size_unit)}`
        }
      />
      <ByClass
        title="Unsuccessful by run time"
        traces={traces}
        pick={({ failures }) => failures?.by_run_time.classes ?? []}
        format={(jobClass) => formatRange(jobClass.low, jobClass.high, formatShortDuration)}
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
  const unknown = traces
    .filter(({ failures }) => failures === null || failures.unknown_share > 0)
    .map(({ name, failures }) => `${traces.length > 1 ? `${name}: ` : ""}${formatRatio(failures?.unknown_share ?? 1)}`)
    .join("; ");
  const groups = STATUSES.map((status) => ({
    key: status,
    title: TITLES[status],
    rows: all
      .filter((row) => row.status.status === status)
      .map(({ name, place, status: { share, jobs, unit_hours_share } }) => ({
        key: name,
        color: colorAt(place),
        title: name,
        dot: share.value,
        bar: toInterval(share),
        tick: unit_hours_share,
        text: formatRatio(share.value),
        tip: `${name}: ${formatCount(jobs)} jobs ${TITLES[status]}, ${formatMeasured(share)}; ${formatRatio(unit_hours_share)} of the unit-hours`,
      })),
  })).filter(({ rows }) => rows.length > 0);
  return (
    <ChartCard
      title="How jobs end"
      hint={`share of jobs; tick: of the unit-hours${lost && `; lost to unsuccessful jobs: ${lost}`}${unknown && `; unknown end, left out: ${unknown}`}`}
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
        <p className={styles.missing}>The trace does not say how its jobs ended.</p>
      )}
    </ChartCard>
  );
}

interface ByClassProps {
  readonly title: string;
  readonly traces: readonly TraceDescription[];
  pick(trace: TraceDescription): readonly ClassEnds[];
  format(jobClass: ClassEnds, trace: TraceDescription): string;
}

function ByClass({ title, traces, pick, format }: ByClassProps) {
  const maximum = Math.max(
    0.1,
    ...traces.flatMap((trace) => pick(trace).map(({ unsuccessful }) => unsuccessful.high ?? unsuccessful.value)),
  );
  const groups = traces.flatMap((trace, place) =>
    pick(trace).map((jobClass) => ({
      key: `${trace.name} ${jobClass.low} ${jobClass.high}`,
      title: format(jobClass, trace),
      detail: traces.length > 1 ? trace.name : `${formatCount(jobClass.jobs)} jobs`,
      rows: [
        {
          key: "share",
          color: colorAt(place),
          title: trace.name,
          dot: jobClass.unsuccessful.value,
          bar: toInterval(jobClass.unsuccessful),
          tick: jobClass.failed.value,
          text: formatRatio(jobClass.unsuccessful.value),
          tip: `${trace.name}, ${format(jobClass, trace)}: ${formatMeasured(jobClass.unsuccessful)} of ${formatCount(jobClass.jobs)} jobs unsuccessful, ${formatRatio(jobClass.failed.value)} failed`,
        },
      ],
    })),
  );
  return (
    <ChartCard
      title={title}
      hint="failed, cancelled or timed out, by thirds of the jobs; tick: failed only"
      twin={{
        header: ["trace", "from", "to", "jobs", "unsuccessful", "low", "high", "failed"],
        rows: traces.flatMap((trace) =>
          pick(trace).map((jobClass) => [
            trace.name,
            jobClass.low,
            jobClass.high,
            jobClass.jobs,
            jobClass.unsuccessful.value,
            jobClass.unsuccessful.low,
            jobClass.unsuccessful.high,
            jobClass.failed.value,
          ]),
        ),
      }}
    >
      {groups.length > 0 ? (
        <IntervalRows label={title} scale={linearScale(0, maximum, 5, formatRatio)} groups={groups} />
      ) : (
        <p className={styles.missing}>The trace does not contain this.</p>
      )}
    </ChartCard>
  );
}
