// Metrics over time as sparklines below one another, each with its name and last value, and a time axis.

import type { ReactNode } from "react";
import { formatInstant } from "../../base/time.ts";
import type { Span } from "../../charts/span-strip.tsx";
import { Sparkline } from "../../charts/sparkline.tsx";
import type { Band } from "../../data/bands.ts";
import type { SeriesRange } from "../../data/queries.ts";
import { useNow } from "../../widgets/clock-context.ts";
import styles from "./metric-lines.module.css";

export function MetricLines({ range, children }: { range: SeriesRange; children: ReactNode }) {
  const now = useNow();
  return (
    <div className={styles.lines}>
      {children}
      <div className={styles.axis}>
        <span>{formatInstant(range.startMs, now)}</span>
        <span>{range.endMs === null ? "now" : formatInstant(range.endMs, now)}</span>
      </div>
    </div>
  );
}

interface MetricLineProps {
  readonly title: string;
  /** What its values were, in words. */
  readonly words: string;
  readonly value: ReactNode;
  readonly band: Band;
  readonly startMs: number;
  readonly endMs: number;
  readonly top: number;
  readonly color: string;
  /** Times to mark behind the line, in which color, and what they are. */
  readonly shaded?: { readonly spans: readonly Span[]; readonly color: string; readonly words: string };
}

export function MetricLine({ title, words, value, band, startMs, endMs, top, color, shaded }: MetricLineProps) {
  return (
    <div className={styles.line}>
      <span>{title}</span>
      <span data-tip={words}>{value}</span>
      <Sparkline
        label={`${title}: ${words}${shaded ? `; ${shaded.words}` : ""}`}
        timesMs={band.timesMs}
        values={band.means}
        minima={band.minima}
        maxima={band.maxima}
        startMs={startMs}
        endMs={endMs}
        top={top}
        color={color}
        {...(shaded ? { shaded: shaded.spans, shade: shaded.color } : {})}
      />
    </div>
  );
}
