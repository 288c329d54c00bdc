// Utilization and waiting jobs over time, two charts per trace, each over its own time.

import type { Occupancy, TraceDescription } from "../../../api/generated.ts";
import { DAY_S } from "../../../base/durations.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { formatExact } from "../../../base/time.ts";
import { linearScale, type Scale, timeScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { XyChart } from "../../../charts/xy-chart.tsx";
import { ChartCard } from "../../../parts/charts/chart-card.tsx";
import styles from "./history.module.css";
import { formatUnits } from "./words.ts";

/** The format of this cluster's own history. */
const OWN_FORMAT = "history";

interface DescribedTrace {
  readonly trace: TraceDescription;
  readonly occupancy: Occupancy;
  readonly place: number;
}

export function OccupancyCards({ traces }: { traces: readonly TraceDescription[] }) {
  const described = traces.flatMap((trace, place) =>
    trace.occupancy ? [{ trace, occupancy: dropIncompleteBin(trace, trace.occupancy), place }] : [],
  );
  const rows = described.flatMap(({ trace, occupancy: { course } }) =>
    course.busy_units.map((busy, at) => [
      trace.name,
      course.start_s + at * course.step_s,
      busy,
      course.running_jobs[at],
      course.waiting_jobs[at],
    ]),
  );
  return (
    <ChartCard
      title="Utilization over time"
      hint="busy share of the machine, and waiting jobs"
      isWide
      twin={{ header: ["trace", "time, s", "busy units", "running jobs", "waiting jobs"], rows }}
    >
      {described.map((entry) => (
        <TraceCharts key={entry.trace.name} {...entry} />
      ))}
      {described.length === 0 && <p className={styles.missing}>The trace has no start and end times.</p>}
    </ChartCard>
  );
}

/** Drops the last, incomplete bin of a history that is still recorded: its means would look like a decline. */
function dropIncompleteBin({ format }: TraceDescription, occupancy: Occupancy): Occupancy {
  const { course } = occupancy;
  if (format !== OWN_FORMAT || course.busy_units.length < 2) return occupancy;
  const dropLast = (values: readonly number[]) => values.slice(0, -1);
  return {
    ...occupancy,
    course: {
      ...course,
      busy_units: dropLast(course.busy_units),
      running_jobs: dropLast(course.running_jobs),
      waiting_units: dropLast(course.waiting_units),
      waiting_jobs: dropLast(course.waiting_jobs),
    },
  };
}

function TraceCharts({ trace, occupancy, place }: DescribedTrace) {
  const { course, capacity_units: capacity } = occupancy;
  const { xs, x } = toTimes(occupancy);
  const busy = course.busy_units.map((units) => units / Math.max(1, capacity));
  const top = Math.max(1, ...busy);
  const maxWaiting = Math.max(4, ...course.waiting_jobs);
  const color = colorAt(place);
  return (
    <div className={styles.multiple}>
      <p className={styles.caption}>
        <i data-swatch={true} style={{ background: color }} />
        <b>{trace.name}</b> {formatRatio(occupancy.utilization)} of {formatUnits(capacity, trace.size_unit)} used
        {!occupancy.is_capacity_stated && ` (a guess: ${occupancy.capacity_reason})`}
        {occupancy.over_capacity_share > 0.001 &&
          `; over capacity during ${formatRatio(occupancy.over_capacity_share)} of the time`}
      </p>
      <XyChart
        label={`Busy share of ${trace.name} over time`}
        x={x}
        y={linearScale(0, top, 3, formatRatio)}
        xTitle=""
        yTitle="busy"
        height={120}
        series={[{ key: "busy", title: "busy", color, look: "area", xs, ys: busy }]}
      />
      <XyChart
        label={`Waiting jobs of ${trace.name} over time`}
        x={x}
        y={linearScale(0, maxWaiting, 3, formatCount)}
        xTitle={occupancy.epoch_s === null ? "days since the start" : ""}
        yTitle="waiting jobs"
        height={110}
        series={[{ key: "waiting", title: "waiting", color, look: "line", xs, ys: course.waiting_jobs }]}
      />
    </div>
  );
}

/** Wall-clock time where the trace has a start date, else days. */
function toTimes({ course, epoch_s }: Occupancy): { readonly xs: readonly number[]; readonly x: Scale } {
  const seconds = course.busy_units.map((_, at) => (at + 0.5) * course.step_s);
  const length = course.busy_units.length * course.step_s;
  if (epoch_s === null) {
    const x = linearScale(0, length / DAY_S, 8, (day) => `day ${Math.round(day * 10) / 10}`);
    return { xs: seconds.map((second) => second / DAY_S), x };
  }
  const startMs = (course.start_s + epoch_s) * 1000;
  return {
    xs: seconds.map((second) => startMs + second * 1000),
    x: timeScale(startMs, startMs + length * 1000, 9, (atMs) => formatExact(atMs)),
  };
}
