// When jobs are submitted: a map of the week for each trace, and the mean of each hour of the day for all.

import type { TraceDescription } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { HeatMatrix } from "../../../charts/heat-matrix.tsx";
import { linearScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { XyChart } from "../../../charts/xy-chart.tsx";
import { ChartCard, sayNumber } from "../../../parts/charts/chart-card.tsx";
import styles from "./history.module.css";

const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const HOURS = Array.from({ length: 24 }, (_, hour) => String(hour));

interface ArrivalCardsProps {
  readonly traces: readonly TraceDescription[];
  readonly timezone: string;
}

export function ArrivalCards({ traces, timezone }: ArrivalCardsProps) {
  return (
    <>
      <ByHour traces={traces} timezone={timezone} />
      {traces.map((trace, place) => (
        <Week key={trace.name} trace={trace} color={colorAt(place)} timezone={timezone} />
      ))}
    </>
  );
}

function ByHour({ traces, timezone }: ArrivalCardsProps) {
  const series = traces.flatMap(({ name, arrivals }, place) => {
    const hours = arrivals.jobs_per_hour_by_hour;
    if (!hours) return [];
    return [
      {
        key: name,
        title: name,
        color: colorAt(place),
        look: "line" as const,
        xs: hours.map((_, hour) => hour),
        ys: hours.map((each) => each?.value ?? 0),
      },
    ];
  });
  const rows = traces.flatMap(({ name, arrivals }) =>
    (arrivals.jobs_per_hour_by_hour ?? []).map((each, hour) => [name, hour, each?.value, each?.low, each?.high]),
  );
  const top = Math.max(0.1, ...series.flatMap(({ ys }) => ys));
  return (
    <ChartCard
      title="Submissions by hour of the day"
      hint={`jobs per hour, mean of that hour of all days; ${timezone}`}
      twin={{ header: ["trace", "hour", "jobs per hour", "low", "high"], rows }}
    >
      {series.length > 0 ? (
        <XyChart
          label="Submissions by hour of the day"
          x={linearScale(0, 23, 8, (hour) => `${Math.round(hour)}:00`)}
          y={linearScale(0, top * 1.05, 5, sayNumber)}
          xTitle="hour"
          yTitle="jobs per hour"
          series={series}
        />
      ) : (
        <p className={styles.missing}>The trace does not say when it began.</p>
      )}
    </ChartCard>
  );
}

function Week({ trace, color, timezone }: { trace: TraceDescription; color: string; timezone: string }) {
  const week = trace.arrivals.jobs_by_weekday_hour;
  const cells = (week ?? []).flatMap((hours, row) =>
    hours.map((value, column) => ({
      row,
      column,
      value,
      text: String(value),
      tip: `${WEEKDAYS[row]} ${column}:00: ${formatCount(value)} jobs`,
    })),
  );
  return (
    <ChartCard
      title={`Week of ${trace.name}`}
      hint={`jobs submitted, by weekday and hour; ${timezone}`}
      twin={{
        header: ["weekday", "hour", "jobs"],
        rows: cells.map(({ row, column, value }) => [WEEKDAYS[row], column, value]),
      }}
    >
      <p className={styles.caption}>
        <i data-swatch={true} style={{ background: color }} /> brighter: more jobs
      </p>
      {week ? (
        <HeatMatrix
          label={`Submissions of ${trace.name} by weekday and hour`}
          rowTitle="day"
          columnTitle="hour"
          rows={WEEKDAYS}
          columns={HOURS}
          cells={cells.filter(({ value }) => value > 0)}
        />
      ) : (
        <p className={styles.missing}>The trace does not say when it began.</p>
      )}
    </ChartCard>
  );
}
