// Whether intervals hold what they say: of the forecasts that were to hold in 90 of 100 cases, how many did; and errors by bin.

import type { Coverage, ReliabilityAnswer } from "../../../api/generated.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { formatDuration, formatInstant } from "../../../base/time.ts";
import { IntervalRows } from "../../../charts/interval-rows.tsx";
import { evenDurationScale, linearScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { type Series, XyChart } from "../../../charts/xy-chart.tsx";
import { ChartCard, ChartCards } from "../../../parts/charts/chart-card.tsx";
import { useNow } from "../../../widgets/clock-context.ts";
import { Legend } from "../../../widgets/legend.tsx";
import { Waits } from "./nothing-yet.tsx";

export function ReliabilityCards({ reliability }: { reliability: ReliabilityAnswer }) {
  const now = useNow();
  const count = reliability.jobs + reliability.later_jobs;
  if (count === 0) {
    return (
      <Waits title="No forecast has come due yet">
        {reliability.open > 0
          ? `${formatCount(reliability.open)} forecasts are open; each is compared with what happened once its workload starts.`
          : "The first forecast of each waiting workload is kept and compared with its start. Nothing had to wait since."}
      </Waits>
    );
  }
  const told = [
    { title: "told when submitted", coverage: reliability.told, color: colorAt(0) },
    { title: "told while waiting", coverage: reliability.later, color: colorAt(3) },
    { title: "before calibration", coverage: reliability.sampled, color: colorAt(6) },
  ].filter(({ coverage }) => coverage.length > 0);
  const longest = Math.max(60, ...reliability.bins.map(({ median_error_s }) => median_error_s));
  return (
    <ChartCards>
      <ChartCard
        title="Reliability of intervals"
        hint={`${formatCount(count)} forecasts${reliability.since === null ? "" : ` since ${formatInstant(reliability.since, now)}`}; on the dashed line intervals hold what they say`}
        twin={{
          header: ["intervals", "should hold", "held", "at least (95 %)", "at most", "forecasts"],
          rows: told.flatMap(({ title, coverage }) =>
            coverage.map((each) => [title, each.nominal, each.covered, each.low, each.high, each.jobs]),
          ),
        }}
      >
        <XyChart
          label="Reliability of intervals"
          x={linearScale(0, 1, 5, formatRatio)}
          y={linearScale(0, 1, 5, formatRatio)}
          xTitle="should hold"
          yTitle="held"
          series={told.map(({ title, coverage, color }) => toSeries(title, coverage, color))}
          height={280}
          hasDiagonal
        />
        <Legend>
          {told.map(({ title, coverage, color }) => (
            <li key={title}>
              <i data-swatch={true} style={{ background: color }} /> {title}: {sayCoverage(coverage)}
            </li>
          ))}
        </Legend>
      </ChartCard>
      <ChartCard
        title="Error by size and queue"
        hint="median of the absolute error of the likely start"
        twin={{
          header: ["size", "queue", "forecasts", "median error, s"],
          rows: reliability.bins.map((bin) => [bin.size, bin.queue, bin.jobs, bin.median_error_s]),
        }}
      >
        <IntervalRows
          label="Error by size and queue"
          scale={evenDurationScale(longest * 1.05, 5)}
          groups={reliability.bins.map((bin) => ({
            key: `${bin.size} ${bin.queue}`,
            title: bin.size,
            detail: bin.queue,
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

/** How often the 90 % intervals held, and how sure that is. */
export function sayCoverage(coverage: readonly Coverage[]): string {
  const shown = coverage.find(({ nominal }) => nominal === SHOWN_LEVEL);
  if (!shown) return "–";
  return `${formatRatio(shown.covered)} of the 90 % intervals held (${formatRatio(shown.low)} to ${formatRatio(shown.high)}, ${formatCount(shown.jobs)} forecasts)`;
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
