// Metrics as lines, one chart each, on one axis and with one cursor. Repeats taken together are a line with a band around it.

import { useEffect, useMemo, useState } from "react";
import type { RunMetricName, RunMetrics } from "../../api/generated.ts";
import type { RunBandLine, RunLine } from "../../api/runs-client.ts";
import type { Quantity } from "../../base/format.ts";
import { useRunBands, useRunLines } from "../../data/runs.ts";
import type { RunsPage } from "../../state/runs.ts";
import { Frame } from "../../widgets/frame.tsx";
import styles from "./charts.module.css";
import type { RunGroup } from "./groups.ts";
import { RunLegend } from "./legend.tsx";
import { type DrawnLine, MetricChart } from "./metric-chart.tsx";
import { sayMetric } from "./metric-menu.tsx";
import { treatLine } from "./smoothing.ts";

interface LinesDrawingProps {
  readonly page: RunsPage;
  readonly groups: readonly RunGroup[];
  readonly known: RunMetrics;
  readonly metrics: readonly string[];
}

const POINTS = 900;
type Range = readonly [number, number];

export function LinesDrawing({ page, groups, known, metrics }: LinesDrawingProps) {
  const [zoom, setZoom] = useState<Range | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const isTogether = page.grouping !== "run";
  const asked = {
    metrics,
    axis: page.axis,
    phase: page.axis === "time" && page.phase !== "" ? page.phase : null,
    points: POINTS,
    start: zoom?.[0] ?? null,
    end: zoom?.[1] ?? null,
  };
  const rows = groups.flatMap((group) => group.rows);
  const isLive = rows.some(({ state }) => state === "running");
  const lines = useRunLines({ ...asked, runs: isTogether ? [] : rows.map(({ run }) => run) }, isLive);
  const bandsOf = isTogether ? groups.map((group) => group.rows.map(({ run }) => run)) : [];
  const bands = useRunBands({ ...asked, groups: bandsOf, band: page.band }, isLive);
  // What was zoomed into on one axis says nothing on another.
  // biome-ignore lint/correctness/useExhaustiveDependencies: these are what the zoom was of
  useEffect(() => setZoom(null), [page.axis, page.phase]);
  const drawn = useMemo(
    () => (isTogether ? drawBands(bands.value ?? [], groups, page) : drawLines(lines.value ?? [], groups, page)),
    [isTogether, bands.value, lines.value, groups, page],
  );
  const range = zoom ?? extentOf(drawn);
  const source = isTogether ? bands : lines;
  return (
    <>
      <RunLegend groups={groups}>
        {zoom && (
          <button type="button" onClick={() => setZoom(null)}>
            Whole {page.axis}
          </button>
        )}
      </RunLegend>
      <Frame
        source={source as typeof lines}
        what="the metrics"
        isEmpty={() => drawn.size === 0}
        empty={<p>Over {page.axis} none of these runs has what was chosen. Try another axis or metric.</p>}
      >
        {() => (
          <div className={styles.charts} data-lines={true}>
            {metrics.map((metric) => (
              <MetricChart
                key={metric}
                {...titleOf(metric, known)}
                axis={page.axis}
                lines={drawn.get(metric) ?? []}
                range={range}
                cursor={cursor}
                onCursor={setCursor}
                onZoom={setZoom}
              />
            ))}
          </div>
        )}
      </Frame>
    </>
  );
}

export function titleOf(metric: string, known: RunMetrics): { title: string; unit: Quantity | null } {
  const found = known.metrics.find((each) => each.metric === metric);
  return { title: sayMetric(metric, found?.label ?? null), unit: unitOf(found) };
}

function unitOf(metric: RunMetricName | undefined): Quantity | null {
  return (metric?.unit ?? null) as Quantity | null;
}

type Drawn = ReadonlyMap<string, readonly DrawnLine[]>;

function drawLines(lines: readonly RunLine[], groups: readonly RunGroup[], page: RunsPage): Drawn {
  const byRun = new Map(groups.map((group) => [group.rows[0]?.run ?? "", group]));
  const drawn = new Map<string, DrawnLine[]>();
  for (const line of lines) {
    const group = byRun.get(line.run);
    const treated = treatLine(line, page);
    if (!group || treated.x.length === 0) continue;
    const label = line.place === null ? group.label : `${group.label} · ${line.place}`;
    const key = `${line.run}/${line.place ?? ""}/${line.scope ?? ""}`;
    push(drawn, line.metric, { key, label, color: group.color, ...treated, low: null, high: null });
  }
  return drawn;
}

function drawBands(bands: readonly RunBandLine[], groups: readonly RunGroup[], page: RunsPage): Drawn {
  const drawn = new Map<string, DrawnLine[]>();
  for (const { group: at, metric, x, mean, low, high } of bands) {
    const group = groups[at];
    // Outliers are those of single runs: a mean has none to leave out.
    const treat = (values: Float64Array) => treatLine({ x, values }, { ...page, outliers: 0 });
    const line = treat(mean);
    if (!group || line.x.length === 0) continue;
    const [least, most] = [treat(low).values, treat(high).values];
    push(drawn, metric, { key: group.key, label: group.label, color: group.color, ...line, low: least, high: most });
  }
  return drawn;
}

function push(drawn: Map<string, DrawnLine[]>, metric: string, line: DrawnLine): void {
  const lines = drawn.get(metric);
  if (lines) lines.push(line);
  else drawn.set(metric, [line]);
}

function extentOf(drawn: Drawn): Range {
  const all = [...drawn.values()].flat();
  const from = Math.min(...all.map(({ x }) => x[0] ?? 0));
  const to = Math.max(...all.map(({ x }) => x.at(-1) ?? 0));
  return all.length === 0 ? [0, 1] : [from, to > from ? to : from + 1];
}
