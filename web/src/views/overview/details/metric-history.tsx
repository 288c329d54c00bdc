// The main metrics over time as sparklines: the mean over units, and a band from minimum to maximum.

import { useMemo } from "react";
import type { SeriesSubject } from "../../../api/client.ts";
import { METRICS } from "../../../base/catalogue.ts";
import { formatQuantity, isKnown } from "../../../base/format.ts";
import { type Band, computeBands } from "../../../data/bands.ts";
import { endAt, type SeriesRange, useSeries } from "../../../data/queries.ts";
import { MetricLine, MetricLines } from "../../../parts/charts/metric-lines.tsx";
import type { MetricName } from "../../../state/attributes.ts";
import { useMoment } from "../../../state/use-moment.ts";
import { useNow } from "../../../widgets/clock-context.ts";
import { Frame } from "../../../widgets/frame.tsx";

interface Shown {
  readonly metric: MetricName;
  readonly title: string;
  readonly color: string;
}

const SHOWN: readonly Shown[] = [
  { metric: "gpu_util_ratio", title: "Utilization", color: "var(--accent)" },
  { metric: "power_watts", title: "Power", color: "var(--warn)" },
  { metric: "memory_used_bytes", title: "Memory", color: "var(--ok)" },
];
const SHOWN_METRICS = SHOWN.map(({ metric }) => metric);

interface MetricHistoryProps {
  readonly subject: SeriesSubject;
  readonly range: SeriesRange;
  readonly unitCount: number;
  /** What the lines are scaled to, where it is known: the power limit, the memory of a GPU. */
  readonly tops?: Readonly<Record<string, number | null>>;
}

export function MetricHistory({ subject, range: wanted, unitCount, tops = {} }: MetricHistoryProps) {
  const range = endAt(wanted, useMoment());
  const series = useSeries(subject, SHOWN_METRICS, range, unitCount);
  return (
    <Frame source={series} what="history" isEmpty={(lines) => lines.length === 0} empty="No samples in this time.">
      {(lines) => <Lines bands={lines} range={range} tops={tops} />}
    </Frame>
  );
}

type LinesProps = Required<Pick<MetricHistoryProps, "range" | "tops">> & {
  readonly bands: Parameters<typeof computeBands>[0];
};

function Lines({ bands: lines, range, tops }: LinesProps) {
  const now = useNow();
  const bands = useMemo(() => new Map(computeBands(lines).map((band) => [band.metric, band])), [lines]);
  const endMs = range.endMs ?? Math.max(now, ...[...bands.values()].map((band) => band.timesMs.at(-1) ?? 0));
  return (
    <MetricLines range={range}>
      {SHOWN.map((shown) => {
        const band = bands.get(shown.metric);
        const top = tops[shown.metric] ?? null;
        if (!band) return null;
        return (
          <MetricLine
            key={shown.metric}
            title={shown.title}
            words={rangeTip(shown, band)}
            value={
              <>
                <b>{formatQuantity(band.means.at(-1), METRICS[shown.metric].unit)}</b>
                {isKnown(top) && <small> of {formatQuantity(top, METRICS[shown.metric].unit)}</small>}
              </>
            }
            band={band}
            startMs={range.startMs}
            endMs={endMs}
            top={topOf(shown, band, top)}
            color={shown.color}
          />
        );
      })}
    </MetricLines>
  );
}

function topOf({ metric }: Shown, { maxima }: Band, known: number | null): number {
  if (METRICS[metric].unit === "ratio") return 1;
  const greatest = maxima.reduce((most, value) => Math.max(most, value), 0);
  return isKnown(known) ? Math.max(known, greatest) : greatest * 1.1;
}

function rangeTip({ metric }: Shown, { means, minima, maxima, units }: Band): string {
  const { unit } = METRICS[metric];
  const mean = means.reduce((sum, value) => sum + value, 0) / means.length;
  const least = minima.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const most = maxima.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const over = units > 1 ? ` over ${units} units` : "";
  return `mean ${formatQuantity(mean, unit)} · ${formatQuantity(least, unit)} to ${formatQuantity(most, unit)}${over}`;
}
