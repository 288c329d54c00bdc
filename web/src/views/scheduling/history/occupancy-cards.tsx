// How much was busy over time and how many waited: a strip per trace, each over its own time.

import type { Occupancy, TraceDescription } from "../../../api/generated.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { formatExact } from "../../../base/time.ts";
import { linearScale, type Scale, timeScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { XyChart } from "../../../charts/xy-chart.tsx";
import { ChartCard } from "../../../parts/charts/chart-card.tsx";
import styles from "./history.module.css";
import { sayUnits } from "./words.ts";

const DAY_S = 86_400;
/** Of this cluster's own history. */
const OWN_FORMAT = "history";

interface Known {
  readonly trace: TraceDescription;
  readonly occupancy: Occupancy;
  readonly place: number;
}

export function OccupancyCards({ traces }: { traces: readonly TraceDescription[] }) {
  const known = traces.flatMap((trace, place) =>
    trace.occupancy ? [{ trace, occupancy: settle(trace, trace.occupancy), place }] : [],
  );
  const rows = known.flatMap(({ trace, occupancy: { course } }) =>
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
      title="Occupation over time"
      hint="share of the machine that was busy, and jobs that waited"
      isWide
      twin={{ header: ["trace", "time, s", "busy units", "running jobs", "waiting jobs"], rows }}
    >
      {known.map((each) => (
        <Strip key={each.trace.name} {...each} />
      ))}
      {known.length === 0 && <p className={styles.missing}>The trace does not say when jobs ran.</p>}
    </ChartCard>
  );
}

/** The last bin of a history that goes on is only begun: its means would look like an end. */
function settle({ format }: TraceDescription, occupancy: Occupancy): Occupancy {
  const { course } = occupancy;
  if (format !== OWN_FORMAT || course.busy_units.length < 2) return occupancy;
  const cut = (values: readonly number[]) => values.slice(0, -1);
  return {
    ...occupancy,
    course: {
      ...course,
      busy_units: cut(course.busy_units),
      running_jobs: cut(course.running_jobs),
      waiting_units: cut(course.waiting_units),
      waiting_jobs: cut(course.waiting_jobs),
    },
  };
}

function Strip({ trace, occupancy, place }: Known) {
  const { course, capacity_units: capacity } = occupancy;
  const { xs, x } = timesOf(occupancy);
  const busy = course.busy_units.map((units) => units / Math.max(1, capacity));
  const top = Math.max(1, ...busy);
  const mostWaiting = Math.max(4, ...course.waiting_jobs);
  const color = colorAt(place);
  return (
    <div className={styles.multiple}>
      <p className={styles.caption}>
        <i data-swatch={true} style={{ background: color }} />
        <b>{trace.name}</b> {formatRatio(occupancy.utilization)} of {sayUnits(capacity, trace.size_unit)} used
        {!occupancy.is_capacity_stated && " (the most that was ever busy)"}
        {occupancy.over_capacity_share > 0.001 &&
          `; more busy than there is during ${formatRatio(occupancy.over_capacity_share)} of the time`}
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
        y={linearScale(0, mostWaiting, 3, formatCount)}
        xTitle={occupancy.epoch_s === null ? "days since it began" : ""}
        yTitle="jobs that wait"
        height={110}
        series={[{ key: "waiting", title: "waiting", color, look: "line", xs, ys: course.waiting_jobs }]}
      />
    </div>
  );
}

/** Real time where the trace says when it began, else days. */
function timesOf({ course, epoch_s }: Occupancy): { readonly xs: readonly number[]; readonly x: Scale } {
  const seconds = course.busy_units.map((_, at) => (at + 0.5) * course.step_s);
  const length = course.busy_units.length * course.step_s;
  if (epoch_s === null) {
    const x = linearScale(0, length / DAY_S, 8, (day) => `day ${Math.round(day * 10) / 10}`);
    return { xs: seconds.map((each) => each / DAY_S), x };
  }
  const startMs = (course.start_s + epoch_s) * 1000;
  return {
    xs: seconds.map((each) => startMs + each * 1000),
    x: timeScale(startMs, startMs + length * 1000, 9, (atMs) => formatExact(atMs)),
  };
}
