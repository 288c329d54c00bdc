// Recorded waits by size and by the queue found at submission: the middle half as a bar, the median as a dot, the 95th
// percentile as a tick.

import type { ClassWaits, TraceDescription } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { formatDuration, formatShortDuration } from "../../../base/time.ts";
import { type IntervalGroup, IntervalRows } from "../../../charts/interval-rows.tsx";
import { durationScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { ChartCard } from "../../../parts/charts/chart-card.tsx";
import styles from "./history.module.css";
import { formatRange, nameUnits } from "./words.ts";

export function WaitCards({ traces }: { traces: readonly TraceDescription[] }) {
  return (
    <>
      <WaitCard
        title="Wait by size"
        classes={nameUnits(traces)}
        traces={traces}
        pick={({ waiting }) => waiting?.by_size ?? []}
      />
      <WaitCard
        title="Wait by queue"
        classes="jobs waiting at submission"
        traces={traces}
        pick={({ waiting }) => waiting?.by_waiting_jobs ?? []}
      />
    </>
  );
}

interface WaitCardProps {
  readonly title: string;
  readonly classes: string;
  readonly traces: readonly TraceDescription[];
  pick(trace: TraceDescription): readonly ClassWaits[];
}

function WaitCard({ title, classes, traces, pick }: WaitCardProps) {
  const all = traces.flatMap((trace, place) => pick(trace).map((waits) => ({ name: trace.name, place, waits })));
  const scale = durationScale(1, Math.max(60, ...all.map(({ waits }) => waits.p95_s)));
  return (
    <ChartCard
      title={title}
      hint={`by ${classes}; bar: middle 50 %, dot: median, tick: 95th percentile`}
      twin={{
        header: ["trace", "from", "to", "jobs", "mean, s", "25 %, s", "50 %, s", "75 %, s", "95 %, s"],
        rows: all.map(({ name, waits }) => [
          name,
          waits.low,
          waits.high,
          waits.jobs,
          waits.mean_s,
          waits.p25_s,
          waits.p50_s,
          waits.p75_s,
          waits.p95_s,
        ]),
      }}
    >
      {all.length > 0 ? (
        <IntervalRows label={title} scale={scale} groups={groupByBounds(all)} />
      ) : (
        <p className={styles.missing}>The trace has no wait times.</p>
      )}
    </ChartCard>
  );
}

interface NamedWaits {
  readonly name: string;
  readonly place: number;
  readonly waits: ClassWaits;
}

/** Groups classes with the same bounds, one row per trace. */
function groupByBounds(all: readonly NamedWaits[]): readonly IntervalGroup[] {
  const groups = new Map<string, NamedWaits[]>();
  for (const entry of all.toSorted((a, b) => a.waits.low - b.waits.low || a.waits.high - b.waits.high)) {
    const key = formatRange(entry.waits.low, entry.waits.high, formatCount);
    groups.set(key, [...(groups.get(key) ?? []), entry]);
  }
  return [...groups].map(([title, rows]) => ({
    key: title,
    title,
    rows: rows.map(({ name, place, waits }) => ({
      key: name,
      color: colorAt(place),
      title: name,
      dot: waits.p50_s,
      bar: [waits.p25_s, waits.p75_s] as const,
      tick: waits.p95_s,
      text: formatDuration(waits.p50_s),
      tip: `${name}, ${title}: ${formatCount(waits.jobs)} jobs, median ${formatDuration(waits.p50_s)}, middle 50 % ${formatShortDuration(waits.p25_s)} to ${formatShortDuration(waits.p75_s)}, 95th percentile ${formatShortDuration(waits.p95_s)}`,
    })),
  }));
}
