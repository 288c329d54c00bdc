// Accuracy of each run-time predictor on the same jobs, and the share of jobs that ran longer than predicted.

import type { PredictionReport, PredictionTable } from "../../../api/generated.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import { IntervalRows } from "../../../charts/interval-rows.tsx";
import { linearScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { ChartCard, ChartCards } from "../../../parts/charts/chart-card.tsx";
import { MIN_FOR_SHARES } from "./empty-chart.tsx";
import styles from "./quality.module.css";

type AccuracyMeasure = "accuracy" | "under_ratio";

export function AccuracyCards({ report }: { report: PredictionReport }) {
  return (
    <ChartCards>
      <Comparison
        title="Accuracy of run-time predictions"
        hint="mean of min(predicted, actual) / max(predicted, actual); bar: 95 % interval"
        report={report}
        measure="accuracy"
      />
      <Comparison
        title="Ran longer than predicted"
        hint="share of jobs that break a plan based on these predictions"
        report={report}
        measure="under_ratio"
      />
    </ChartCards>
  );
}

interface ComparisonProps {
  readonly title: string;
  readonly hint: string;
  readonly report: PredictionReport;
  readonly measure: AccuracyMeasure;
}

function Comparison({ title, hint, report, measure }: ComparisonProps) {
  return (
    <ChartCard
      title={title}
      hint={hint}
      twin={{
        header: ["after, s", "jobs", "predictor", title.toLowerCase(), "low", "high"],
        rows: report.tables.flatMap(({ elapsed_s, jobs, rows }) =>
          rows.map((row) => [elapsed_s, jobs, row.name, row[measure].value, row[measure].low, row[measure].high]),
        ),
      }}
    >
      {report.tables.map((table) => (
        <div key={table.elapsed_s} className={styles.table}>
          <p>{describeTable(table)}</p>
          {table.jobs < MIN_FOR_SHARES && <p>Too few jobs for shares: at least {MIN_FOR_SHARES} are needed.</p>}
          <IntervalRows
            label={`${title}, ${describeTable(table)}`}
            scale={linearScale(0, 1, 5, formatRatio)}
            groups={(table.jobs < MIN_FOR_SHARES ? [] : table.rows).map((row, index) => {
              const { value, low, high } = row[measure];
              return {
                key: row.name,
                title: row.name,
                rows: [
                  {
                    key: row.name,
                    color: colorAt(index),
                    title: row.name,
                    dot: value,
                    bar: [low, high] as const,
                    text: formatRatio(value),
                    tip: `${row.name}: ${formatRatio(value)} (${formatRatio(low)} to ${formatRatio(high)})`,
                  },
                ],
              };
            })}
          />
          {measure === "accuracy" && table.jobs >= MIN_FOR_SHARES && (
            <p>
              Best lately: {table.chosen.map(({ name, ratio }) => `${name} ${formatRatio(ratio)}`).join(", ")} of the
              jobs
            </p>
          )}
          {measure === "under_ratio" && table.jobs >= MIN_FOR_SHARES && (
            <p>
              Ran longer than the calibrated 90 % quantile of elapsed-aware:{" "}
              <b>{formatRatio(table.q90_under_ratio.value)}</b> (should be 10 %)
            </p>
          )}
        </div>
      ))}
    </ChartCard>
  );
}

function describeTable({ elapsed_s, jobs }: PredictionTable): string {
  const when = elapsed_s === 0 ? "At submission" : `After running for ${formatDuration(elapsed_s)}`;
  return `${when}, ${formatCount(jobs)} unseen jobs`;
}
