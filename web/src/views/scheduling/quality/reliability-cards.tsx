// Calibration of forecasts: the nominal and the observed coverage of intervals, and the error by job size and queue.

import type { Coverage, ReliabilityAnswer } from "../../../api/generated.ts";
import { formatCount, formatPlural, formatRatio } from "../../../base/format.ts";
import { formatDuration, formatInstant } from "../../../base/time.ts";
import { IntervalRows } from "../../../charts/interval-rows.tsx";
import { evenDurationScale, linearScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { type Series, XyChart } from "../../../charts/xy-chart.tsx";
import { ChartCard, ChartCards } from "../../../parts/charts/chart-card.tsx";
import { useNow } from "../../../widgets/clock-context.ts";
import { Legend } from "../../../widgets/legend.tsx";
import { EmptyChart, MIN_FOR_SHARES } from "./empty-chart.tsx";

export function ReliabilityCards({ reliability }: { reliability: ReliabilityAnswer }) {
  const now = useNow();
  const count = reliability.jobs + reliability.later_jobs;
  if (count === 0) {
    return (
      <EmptyChart title="No forecasts to check yet">
        {reliability.open > 0
          ? `${formatCount(reliability.open)} forecasts are pending. Each is checked when its workload starts.`
          : "The first forecast of each waiting workload is stored and compared with its start. No workload has waited yet."}
      </EmptyChart>
    );
  }
  const curves = [
    { title: "at submission", coverage: reliability.told, color: colorAt(0) },
    { title: "while waiting", coverage: reliability.later, color: colorAt(3) },
    { title: "before calibration", coverage: reliability.sampled, color: colorAt(6) },
  ].filter(({ coverage }) => coverage.length > 0);
  const maxErrorS = Math.max(60, ...reliability.bins.map(({ median_error_s }) => median_error_s));
  return (
    <ChartCards>
      <ChartCard
        title="Reliability of intervals"
        hint={`${formatCount(count)} forecasts${reliability.since === null ? "" : ` since ${formatInstant(reliability.since, now)}`}; on the dashed line, intervals are calibrated`}
        twin={{
          header: ["forecast", "nominal coverage", "observed coverage", "low (95 %)", "high", "forecasts"],
          rows: curves.flatMap(({ title, coverage }) =>
            coverage.map((level) => [title, level.nominal, level.covered, level.low, level.high, level.jobs]),
          ),
        }}
      >
        {curves.every(({ coverage }) => hasTooFew(coverage)) ? (
          <EmptyChart title="Too few forecasts for shares">
            {`At least ${MIN_FOR_SHARES} forecasts must be checked; the table has the counts.`}
          </EmptyChart>
        ) : (
          <XyChart
            label="Reliability of intervals"
            x={linearScale(0, 1, 5, formatRatio)}
            y={linearScale(0, 1, 5, formatRatio)}
            xTitle="nominal coverage"
            yTitle="observed coverage"
            series={curves
              .filter(({ coverage }) => !hasTooFew(coverage))
              .map(({ title, coverage, color }) => toSeries(title, coverage, color))}
            height={280}
            hasDiagonal
          />
        )}
        <Legend>
          {curves.map(({ title, coverage, color }) => (
            <li key={title}>
              <i data-swatch={true} style={{ background: color }} /> {title}: {describeCoverage(coverage)}
            </li>
          ))}
        </Legend>
      </ChartCard>
      <ChartCard
        title="Error by size and queue"
        hint="median absolute error of the likely start"
        twin={{
          header: ["size", "queue", "forecasts", "median error, s"],
          rows: reliability.bins.map((bin) => [bin.size, bin.queue, bin.jobs, bin.median_error_s]),
        }}
      >
        <IntervalRows
          label="Error by size and queue"
          scale={evenDurationScale(maxErrorS * 1.05, 5)}
          groups={reliability.bins.map((bin) => ({
            key: `${bin.size} ${bin.queue}`,
            title: bin.size,
            detail: `${bin.queue}, ${formatPlural(bin.jobs, "forecast")}`,
            rows: [
              {
                key: "error",
                color: colorAt(0),
                title: bin.queue,
                dot: bin.median_error_s,
                bar: [0, bin.median_error_s] as const,
                text: formatDuration(bin.median_error_s),
                tip: `${bin.size}, ${bin.queue}: ${formatDuration(bin.median_error_s)}, ${formatCount(bin.jobs)} forecasts`,
              },
            ],
          }))}
        />
      </ChartCard>
    </ChartCards>
  );
}

const SHOWN_LEVEL = 0.9;

/** The observed coverage of the 90 % intervals, with its 95 % interval. */
export function describeCoverage(coverage: readonly Coverage[]): string {
  const level = coverage.find(({ nominal }) => nominal === SHOWN_LEVEL);
  if (!level) return "–";
  if (level.jobs < MIN_FOR_SHARES) return `${countCovered(level)} inside the 90 % interval`;
  return `${formatRatio(level.covered)} of the 90 % intervals contained the start (${formatRatio(level.low)} to ${formatRatio(level.high)}, ${formatCount(level.jobs)} forecasts)`;
}

/** `1 of 2 starts`: where there are too few for a share. */
export function countCovered({ covered, jobs }: Coverage): string {
  return `${formatCount(Math.round(covered * jobs))} of ${formatPlural(jobs, "start")}`;
}

function hasTooFew(coverage: readonly Coverage[]): boolean {
  return coverage.every(({ jobs }) => jobs < MIN_FOR_SHARES);
}

function toSeries(title: string, coverage: readonly Coverage[], color: string): Series {
  const sorted = coverage.toSorted((a, b) => a.nominal - b.nominal);
  return {
    key: title,
    title,
    color,
    look: "line",
    hasDots: true,
    xs: sorted.map(({ nominal }) => nominal),
    ys: sorted.map(({ covered }) => covered),
  };
}
