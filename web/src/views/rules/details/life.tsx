// Charts of a rule's metrics over a workload's life: mean and range over its GPUs; times in violation are shaded.

import { useMemo } from "react";
import type { RuleAnswer } from "../../../api/generated.ts";
import { formatQuantity, type Quantity } from "../../../base/format.ts";
import type { Span } from "../../../charts/span-strip.tsx";
import { type Band, computeBands } from "../../../data/bands.ts";
import { type SeriesRange, useSeries } from "../../../data/queries.ts";
import { useRuleLanguage } from "../../../data/rules.ts";
import { MetricLine, MetricLines } from "../../../parts/charts/metric-lines.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import styles from "./details.module.css";
import { findMetrics } from "./metrics.ts";

interface LifeProps {
  readonly workload: string;
  readonly gpus: number;
  readonly rule: RuleAnswer;
  readonly range: SeriesRange;
  readonly endMs: number;
  readonly shaded: readonly Span[];
  readonly shade: string;
}

export function Life({ workload, gpus, rule, range, endMs, shaded, shade }: LifeProps) {
  const metrics = useMemo(() => findMetrics(rule.document), [rule.document]);
  const series = useSeries({ workload }, metrics, range, gpus);
  const language = useRuleLanguage();
  return (
    <div className={styles.life}>
      <Frame
        source={series}
        what="history"
        isEmpty={(lines) => lines.length === 0}
        empty="No samples in this time range."
      >
        {(lines) => (
          <MetricLines range={range}>
            {computeBands(lines).map((band) => {
              const metric = language?.metrics.find(({ name }) => name === band.metric);
              const unit: Quantity = metric?.unit ?? "count";
              return (
                <MetricLine
                  key={band.metric}
                  title={metric?.label ?? band.metric}
                  words={describe(band, unit)}
                  value={<b>{formatQuantity(band.means.at(-1), unit)}</b>}
                  band={band}
                  startMs={range.startMs}
                  endMs={endMs}
                  top={computeTop(band, unit)}
                  color="var(--accent)"
                  shaded={{ spans: shaded, color: shade, words: "times in violation are shaded" }}
                />
              );
            })}
          </MetricLines>
        )}
      </Frame>
    </div>
  );
}

function computeTop({ maxima }: Band, unit: Quantity): number {
  const maximum = maxima.reduce((most, value) => Math.max(most, value), 0);
  return unit === "ratio" ? Math.max(1, maximum) : maximum * 1.1;
}

function describe({ means, minima, maxima }: Band, unit: Quantity): string {
  const mean = means.reduce((sum, value) => sum + value, 0) / means.length;
  const least = minima.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const most = maxima.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  return `mean ${formatQuantity(mean, unit)}, ${formatQuantity(least, unit)} to ${formatQuantity(most, unit)}`;
}
