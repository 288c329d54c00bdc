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
import { nameUnits, sayRange } from "./words.ts";

export function WaitCards({ traces }: { traces: readonly TraceDescription[] }) {
  return (
    <>
      <WaitCard
        title="Wait by size"
        what={nameUnits(traces)}
        traces={traces}
        pick={({ waiting }) => waiting?.by_size ?? []}
      />
      <WaitCard
        title="Wait by queue"
        what="jobs that waited when it was submitted"
        traces={traces}
        pick={({ waiting }) => waiting?.by_waiting_jobs ?? []}
      />
    </>
  );
}

interface WaitCardProps {
  readonly title: string;
  readonly what: string;
  readonly traces: readonly TraceDescription[];
  pick(trace: TraceDescription): readonly ClassWaits[];
}

function WaitCard({ title, what, traces, pick }: WaitCardProps) {
  const all = traces.flatMap((trace, place) => pick(trace).map((waits) => ({ name: trace.name, place, waits })));
  const scale = durationScale(1, Math.max(60, ...all.map(({ waits }) => waits.p95_s)));
  return (
    <ChartCard
      title={title}
      hint={`by ${what}; bar: middle half, dot: median, tick: 95 % are below`}
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
        <IntervalRows label={title} scale={scale} groups={groupsOf(all)} />
      ) : (
        <p className={styles.missing}>The trace has no waits.</p>
      )}
    </ChartCard>
  );
}

interface NamedWaits {
  readonly name: string;
  readonly place: number;
  readonly waits: ClassWaits;
}

/** Classes of the same bounds stand together, one row per trace. */
function groupsOf(all: readonly NamedWaits[]): readonly IntervalGroup[] {
  const groups = new Map<string, NamedWaits[]>();
  for (const each of all.toSorted((a, b) => a.waits.low - b.waits.low || a.waits.high - b.waits.high)) {
    const key = sayRange(each.waits.low, each.waits.high, formatCount);
    groups.set(key, [...(groups.get(key) ?? []), each]);
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
      tip: `${name}, ${title}: ${formatCount(waits.jobs)} jobs, median ${formatDuration(waits.p50_s)}, middle half ${formatShortDuration(waits.p25_s)} to ${formatShortDuration(waits.p75_s)}, 95 % below ${formatShortDuration(waits.p95_s)}`,
    })),
  }));
}
