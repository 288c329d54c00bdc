// Submissions: mean rates by hour of the day and by weekday, and a heat map of the week for rate trace.

import type { Measured, TraceDescription } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { HeatMatrix } from "../../../charts/heat-matrix.tsx";
import { linearScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { XyChart } from "../../../charts/xy-chart.tsx";
import { ChartCard, sayNumber } from "../../../parts/charts/chart-card.tsx";
import styles from "./history.module.css";

const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const HOURS = Array.from({ length: 24 }, (_, hour) => String(hour));
const CLOCK = HOURS.map((hour) => `${hour}:00`);

interface ArrivalCardsProps {
  readonly traces: readonly TraceDescription[];
  readonly timezone: string;
}

export function ArrivalCards({ traces, timezone }: ArrivalCardsProps) {
  return (
    <>
      <Rates
        title="Submissions by hour of the day"
        of="hour"
        names={CLOCK}
        traces={traces}
        timezone={timezone}
        pick={(arrivals) => arrivals.jobs_per_hour_by_hour}
      />
      <Rates
        title="Submissions by weekday"
        of="weekday"
        names={WEEKDAYS}
        traces={traces}
        timezone={timezone}
        pick={(arrivals) => arrivals.jobs_per_hour_by_weekday}
      />
      {traces.map((trace, place) => (
        <Week key={trace.name} trace={trace} color={colorAt(place)} timezone={timezone} />
      ))}
    </>
  );
}

interface RatesProps extends ArrivalCardsProps {
  readonly title: string;
  readonly of: string;
  readonly names: readonly string[];
  pick(arrivals: TraceDescription["arrivals"]): readonly (Measured | null)[] | null;
}

function Rates({ traces, timezone, title, of, names, pick }: RatesProps) {
  const isRelative = traces.length > 1;
  const series = traces.flatMap(({ name, arrivals }, place) => {
    const rates = pick(arrivals);
    if (!rates) return [];
    const unit = isRelative ? meanRate(rates) : 1;
    return [
      {
        key: name,
        title: name,
        color: colorAt(place),
        look: "line" as const,
        xs: rates.map((_, at) => at),
        ys: rates.map((rate) => (rate?.value ?? 0) / unit),
        lows: rates.map((rate) => (rate?.low ?? rate?.value ?? 0) / unit),
        highs: rates.map((rate) => (rate?.high ?? rate?.value ?? 0) / unit),
      },
    ];
  });
  const rows = traces.flatMap(({ name, arrivals }) =>
    (pick(arrivals) ?? []).map((rate, at) => [name, names[at], rate?.value, rate?.low, rate?.high]),
  );
  const top = Math.max(isRelative ? 1.2 : 0.1, ...series.flatMap(({ highs }) => highs));
  const quantity = isRelative ? "submissions relative to the trace's own mean" : "jobs per hour";
  return (
    <ChartCard
      title={title}
      hint={`${quantity}, mean by ${of}; faint: 95 % interval; ${timezone}`}
      twin={{ header: ["trace", of, "jobs per hour", "low", "high"], rows }}
    >
      {series.length > 0 ? (
        <XyChart
          label={title}
          x={linearScale(0, names.length - 1, 8, (at) => names[Math.round(at)] ?? "")}
          y={linearScale(0, top * 1.05, 5, isRelative ? (value) => `${sayNumber(value)}×` : sayNumber)}
          xTitle={of}
          yTitle={isRelative ? "× mean rate" : "jobs per hour"}
          series={series}
        />
      ) : (
        <p className={styles.missing}>The trace has no start date.</p>
      )}
    </ChartCard>
  );
}

export function meanRate(rates: readonly (Measured | null)[]): number {
  return rates.reduce((sum, rate) => sum + (rate?.value ?? 0), 0) / Math.max(1, rates.length) || 1;
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
      title={`Weekly pattern of ${trace.name}`}
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
        <p className={styles.missing}>The trace has no start date.</p>
      )}
    </ChartCard>
  );
}
