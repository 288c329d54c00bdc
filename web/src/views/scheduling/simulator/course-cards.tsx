// Utilization and waiting jobs over time, for each choice.

import type { SimulatedChoice, SimulationAnswer } from "../../../api/generated.ts";
import { DAY_S, HOUR_S } from "../../../base/durations.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { formatExact } from "../../../base/time.ts";
import { linearScale, type Scale, timeScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { XyChart } from "../../../charts/xy-chart.tsx";
import { ChartCard } from "../../../parts/charts/chart-card.tsx";
import styles from "./simulator.module.css";
import { nameChoice } from "./words.ts";

export interface TimeAxis {
  readonly scale: Scale;
  readonly title: string;
  /** Converts a second of the trace to a value of the scale. */
  at(second: number): number;
}

/** Wall-clock time where the trace has a start date, else days or hours since its start. */
export function toTimeAxis(answer: SimulationAnswer): TimeAxis {
  const courses = answer.choices.map(({ course }) => course);
  const start = Math.min(...courses.map(({ start_s }) => start_s));
  const end = Math.max(...courses.map((course) => course.start_s + course.step_s * course.busy_units.length));
  const { epoch_s: epoch } = answer;
  if (epoch !== null) {
    const toMs = (second: number) => (second + epoch) * 1000;
    return { scale: timeScale(toMs(start), toMs(end), 8, (atMs) => formatExact(atMs)), title: "", at: toMs };
  }
  const unit = end - start > 3 * DAY_S ? DAY_S : HOUR_S;
  const format = (value: number) => formatCount(value);
  return {
    scale: linearScale(0, (end - start) / unit, 8, format),
    title: unit === DAY_S ? "days since the start" : "hours since the start",
    at: (second) => (second - start) / unit,
  };
}

export function CourseCards({ answer }: { answer: SimulationAnswer }) {
  const times = toTimeAxis(answer);
  const toSeries = (values: (choice: SimulatedChoice) => readonly number[]) =>
    answer.choices.map((choice, place) => ({
      key: nameChoice(choice),
      title: nameChoice(choice),
      color: colorAt(place),
      look: "line" as const,
      xs: choice.course.busy_units.map((_, at) => times.at(choice.course.start_s + (at + 0.5) * choice.course.step_s)),
      ys: values(choice),
    }));
  const busy = toSeries(({ course }) => course.busy_units.map((units) => units / answer.processors));
  const waiting = toSeries(({ course }) => course.waiting_jobs);
  const rowsOf = (pick: (choice: SimulatedChoice) => readonly number[]) =>
    answer.choices.flatMap((choice) =>
      pick(choice).map((value, at) => [nameChoice(choice), choice.course.start_s + at * choice.course.step_s, value]),
    );
  return (
    <>
      <ChartCard
        title="Queue"
        hint="waiting jobs over time"
        twin={{ header: ["choice", "time, s", "waiting jobs"], rows: rowsOf(({ course }) => course.waiting_jobs) }}
      >
        <XyChart
          label="Queue"
          x={times.scale}
          y={linearScale(0, Math.max(5, ...waiting.flatMap(({ ys }) => ys)), 5, formatCount)}
          xTitle={times.title}
          yTitle="waiting jobs"
          series={waiting}
        />
      </ChartCard>
      <ChartCard
        title="Utilization"
        hint="busy share of the machine over time"
        isWide
        twin={{ header: ["choice", "time, s", "busy units"], rows: rowsOf(({ course }) => course.busy_units) }}
      >
        {busy.map((line, place) => (
          <div key={line.key}>
            <p className={styles.caption}>
              <i data-swatch={true} style={{ background: line.color }} /> {line.title}
            </p>
            <XyChart
              label={`Utilization with ${line.title}`}
              x={times.scale}
              y={linearScale(0, 1, 2, formatRatio)}
              xTitle={place === busy.length - 1 ? times.title : ""}
              yTitle="busy"
              height={112}
              series={[{ ...line, look: "area" }]}
            />
          </div>
        ))}
      </ChartCard>
    </>
  );
}
