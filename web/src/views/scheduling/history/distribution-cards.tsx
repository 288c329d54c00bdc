// Distributions of run times, sizes, requested times and waits, cumulative or as histograms.

import type { TraceDescription, ValueSpread } from "../../../api/generated.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import { countScale, durationScale, linearScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { type Series, XyChart } from "../../../charts/xy-chart.tsx";
import { ChartCard, type TableTwin } from "../../../parts/charts/chart-card.tsx";
import {
  changeScheduling,
  DISTRIBUTION_SHAPES,
  type DistributionShape,
  MOST_TRACES,
} from "../../../state/scheduling.ts";
import { useChangeScreen, useScreen } from "../../../state/use-screen.ts";
import { Segmented } from "../../../widgets/segmented.tsx";
import styles from "./history.module.css";
import { nameUnits } from "./words.ts";

const TITLES: Readonly<Record<DistributionShape, string>> = {
  distribution: "Cumulative",
  histogram: "Histogram",
};

export function DistributionCards({ traces }: { traces: readonly TraceDescription[] }) {
  const { scheduling } = useScreen();
  const change = useChangeScreen();
  const unit = nameUnits(traces);
  const spreadsOf = (pick: (trace: TraceDescription) => ValueSpread | undefined) =>
    traces.map((trace) => ({ name: trace.name, spread: pick(trace) }));
  return (
    <>
      <div className={styles.bar}>
        <Segmented
          label="Chart type"
          name="shape"
          options={DISTRIBUTION_SHAPES.map((value) => ({ value, title: TITLES[value] }))}
          value={scheduling.shape}
          onChange={(shape) => change(changeScheduling({ shape }))}
        />
      </div>
      <SpreadCard
        title="Run time"
        isTime
        xTitle="run time"
        spreads={spreadsOf(({ run_s }) => run_s)}
        shape={scheduling.shape}
      />
      <SpreadCard
        title="Size"
        xTitle={unit}
        spreads={spreadsOf(({ size_units }) => size_units)}
        shape={scheduling.shape}
      />
      <SpreadCard
        title="Requested time"
        isTime
        xTitle="requested time"
        spreads={spreadsOf(({ requested_s }) => requested_s)}
        shape={scheduling.shape}
      />
      <SpreadCard
        title="Waiting time"
        isTime
        xTitle="wait"
        spreads={spreadsOf(({ waiting }) => waiting?.wait_s)}
        shape={scheduling.shape}
      />
    </>
  );
}

interface SpreadCardProps {
  readonly title: string;
  readonly isTime?: boolean;
  readonly xTitle: string;
  readonly spreads: readonly { readonly name: string; readonly spread: ValueSpread | undefined }[];
  readonly shape: DistributionShape;
}

export function SpreadCard({ title, isTime = false, xTitle, spreads, shape }: SpreadCardProps) {
  const available = spreads.flatMap(({ name, spread }, place) =>
    spread?.distribution && spread.histogram ? [{ name, spread, place }] : [],
  );
  const maximum = Math.max(2, ...available.map(({ spread }) => spread.quantiles?.maximum ?? 1));
  const x = isTime ? durationScale(1, maximum) : countScale(1, maximum);
  const series = available.map(({ name, spread, place }) => toSeries(name, place, spread, shape));
  const top = Math.max(0.01, ...series.flatMap(({ ys }) => ys));
  const y = linearScale(0, shape === "distribution" ? 1 : top * 1.05, 5, formatRatio);
  const format = isTime ? formatDuration : formatCount;
  const medians = available.map(
    ({ name, spread }) => `${available.length > 1 ? `${name}: ` : ""}median ${format(spread.quantiles?.p50)}`,
  );
  const hint = available.length > MOST_TRACES ? `${formatCount(available.length)} distributions` : medians.join("; ");
  return (
    <ChartCard title={title} hint={available.length > 0 ? hint : "no data"} twin={toTable(available, shape, xTitle)}>
      {available.length > 0 ? (
        <XyChart
          label={`${title}: ${TITLES[shape].toLowerCase()}`}
          x={x}
          y={y}
          xTitle={xTitle}
          yTitle={shape === "distribution" ? "cumulative share of jobs" : "share of jobs"}
          series={series}
        />
      ) : (
        <p className={styles.missing}>The trace does not contain this.</p>
      )}
    </ChartCard>
  );
}

function toSeries(name: string, place: number, spread: ValueSpread, shape: DistributionShape): Series {
  const { distribution, histogram } = spread;
  const color = colorAt(place);
  if (shape === "distribution") {
    return {
      key: name,
      title: name,
      color,
      look: "step",
      xs: distribution?.values ?? [],
      ys: distribution?.shares ?? [],
    };
  }
  const shares = [...(histogram?.counts ?? []), 0].map((count) => count / Math.max(1, spread.count));
  return { key: name, title: name, color, look: "step", xs: histogram?.edges ?? [], ys: shares };
}

function toTable(
  available: readonly { readonly name: string; readonly spread: ValueSpread }[],
  shape: DistributionShape,
  value: string,
): TableTwin {
  if (shape === "distribution") {
    return {
      header: ["trace", `${value}, up to`, "share of jobs"],
      rows: available.flatMap(({ name, spread }) =>
        (spread.distribution?.values ?? []).map((bound, at) => [name, bound, spread.distribution?.shares[at]]),
      ),
    };
  }
  return {
    header: ["trace", `${value}, from`, "below", "jobs"],
    rows: available.flatMap(({ name, spread }) =>
      (spread.histogram?.counts ?? []).map((count, at) => [
        name,
        spread.histogram?.edges[at],
        spread.histogram?.edges[at + 1],
        count,
      ]),
    ),
  };
}
