// Accuracy of each run-time predictor on the same jobs, and the share of jobs that ran longer than predicted.

import type { ModelCards, PredictionReport, PredictionTable } from "../../../api/generated.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import { IntervalRows } from "../../../charts/interval-rows.tsx";
import { linearScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { ChartCard, ChartCards } from "../../../parts/charts/chart-card.tsx";
import { EmptyChart } from "./empty-chart.tsx";
import styles from "./quality.module.css";

type AccuracyMeasure = "accuracy" | "under_ratio";

export function AccuracyCards({ cards }: { cards: ModelCards }) {
  const model = cards.models.find(({ report }) => report !== null);
  const report = model?.report;
  if (!report) {
    const jobsNeeded = cards.models[0]?.retrained_after;
    return (
      <EmptyChart title="No predictions to compare yet">
        {jobsNeeded
          ? `The run-time model is trained when ${formatCount(jobsNeeded)} more jobs of this cluster have ended. Predictors are then compared on the jobs submitted last.`
          : "Predictors are compared once a model is trained on jobs of this cluster."}
      </EmptyChart>
    );
  }
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
          <IntervalRows
            label={`${title}, ${describeTable(table)}`}
            scale={linearScale(0, 1, 5, formatRatio)}
            groups={table.rows.map((row, index) => {
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
          {measure === "accuracy" && (
            <p>
              Best lately: {table.speakers.map(({ name, ratio }) => `${name} ${formatRatio(ratio)}`).join(", ")} of the jobs
            </p>
          )}
          {measure === "under_ratio" && (
            <p>
              Ran longer than the calibrated 90 % quantile of elapsed-aware: <b>{formatRatio(table.q90_under_ratio.value)}</b> (should be
              10 %)
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
