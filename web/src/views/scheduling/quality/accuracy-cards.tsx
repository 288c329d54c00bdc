// How good each way of predicting run times is, on the same jobs: accuracy, and how many ran longer than predicted.

import type { ModelCards, PredictionReport, PredictionTable } from "../../../api/generated.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import { IntervalRows } from "../../../charts/interval-rows.tsx";
import { linearScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { ChartCard, ChartCards } from "../../../parts/charts/chart-card.tsx";
import { Waits } from "./nothing-yet.tsx";
import styles from "./quality.module.css";

type Picked = "accuracy" | "under_ratio";

export function AccuracyCards({ cards }: { cards: ModelCards }) {
  const model = cards.models.find(({ report }) => report !== null);
  const report = model?.report;
  if (!report) {
    const missing = cards.models[0]?.retrained_after;
    return (
      <Waits title="Nothing to compare yet">
        {missing
          ? `Run times are learned once ${formatCount(missing)} more jobs of this cluster have ended; predictors are then compared on those submitted last.`
          : "Predictors are compared as soon as a model was made from jobs of this cluster."}
      </Waits>
    );
  }
  return (
    <ChartCards>
      <Comparison
        title="Accuracy of run-time predictions"
        hint="shorter over longer of prediction and run, mean; bar: 95 % interval"
        report={report}
        picked="accuracy"
      />
      <Comparison
        title="Ran longer than predicted"
        hint="share of jobs; a plan built on these is broken by that many"
        report={report}
        picked="under_ratio"
      />
    </ChartCards>
  );
}

interface ComparisonProps {
  readonly title: string;
  readonly hint: string;
  readonly report: PredictionReport;
  readonly picked: Picked;
}

function Comparison({ title, hint, report, picked }: ComparisonProps) {
  return (
    <ChartCard
      title={title}
      hint={hint}
      twin={{
        header: ["after, s", "jobs", "predictor", title.toLowerCase(), "low", "high"],
        rows: report.tables.flatMap(({ elapsed_s, jobs, rows }) =>
          rows.map((row) => [elapsed_s, jobs, row.name, row[picked].value, row[picked].low, row[picked].high]),
        ),
      }}
    >
      {report.tables.map((table) => (
        <div key={table.elapsed_s} className={styles.table}>
          <p>{sayWhen(table)}</p>
          <IntervalRows
            label={`${title}, ${sayWhen(table)}`}
            scale={linearScale(0, 1, 5, formatRatio)}
            groups={table.rows.map((row, place) => {
              const { value, low, high } = row[picked];
              return {
                key: row.name,
                title: row.name,
                rows: [
                  {
                    key: row.name,
                    color: colorAt(place),
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
          {picked === "under_ratio" && (
            <p>
              Ran longer than its calibrated 90 % quantile: <b>{formatRatio(table.q90_under_ratio.value)}</b> (should be
              10 %)
            </p>
          )}
        </div>
      ))}
    </ChartCard>
  );
}

function sayWhen({ elapsed_s, jobs }: PredictionTable): string {
  const when = elapsed_s === 0 ? "At submission" : `After running for ${formatDuration(elapsed_s)}`;
  return `${when}, ${formatCount(jobs)} jobs it had not seen`;
}
