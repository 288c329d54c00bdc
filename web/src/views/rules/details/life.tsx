// The metrics a rule looks at, over a workload's life: mean and range over its GPUs, the times in violation shaded.

import { useMemo } from "react";
import type { RuleAnswer } from "../../../api/generated.ts";
import { formatQuantity, type Quantity } from "../../../base/format.ts";
import { formatInstant } from "../../../base/time.ts";
import type { Span } from "../../../charts/span-strip.tsx";
import { Sparkline } from "../../../charts/sparkline.tsx";
import { type Band, computeBands } from "../../../data/bands.ts";
import { type SeriesRange, useSeries } from "../../../data/queries.ts";
import { useRuleLanguage } from "../../../data/rules.ts";
import { useNow } from "../../../widgets/clock-context.ts";
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
  const now = useNow();
  return (
    <div className={styles.life}>
      <Frame source={series} what="history" isEmpty={(lines) => lines.length === 0} empty="No samples in this time.">
        {(lines) => (
          <>
            {computeBands(lines).map((band) => {
              const words = language?.metrics.find(({ name }) => name === band.metric);
              const unit: Quantity = words?.unit ?? "count";
              return (
                <div key={band.metric} className={styles.line}>
                  <span>{words?.label ?? band.metric}</span>
                  <b data-tip={describe(band, unit)}>{formatQuantity(band.means.at(-1), unit)}</b>
                  <Sparkline
                    label={`${words?.label ?? band.metric}: ${describe(band, unit)}; times in violation are shaded`}
                    timesMs={band.timesMs}
                    values={band.means}
                    minima={band.minima}
                    maxima={band.maxima}
                    startMs={range.startMs}
                    endMs={endMs}
                    top={topOf(band, unit)}
                    color="var(--accent)"
                    shaded={shaded}
                    shade={shade}
                  />
                </div>
              );
            })}
          </>
        )}
      </Frame>
      <div className={styles.axis}>
        <span>{formatInstant(range.startMs, now)}</span>
        <span>{range.endMs === null ? "now" : formatInstant(range.endMs, now)}</span>
      </div>
    </div>
  );
}

function topOf({ maxima }: Band, unit: Quantity): number {
  const greatest = maxima.reduce((most, value) => Math.max(most, value), 0);
  return unit === "ratio" ? Math.max(1, greatest) : greatest * 1.1;
}

function describe({ means, minima, maxima }: Band, unit: Quantity): string {
  const mean = means.reduce((sum, value) => sum + value, 0) / means.length;
  const least = minima.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const most = maxima.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  return `mean ${formatQuantity(mean, unit)}, ${formatQuantity(least, unit)} to ${formatQuantity(most, unit)}`;
}
