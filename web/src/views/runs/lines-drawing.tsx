// Line charts of metrics on a shared axis with a shared cursor. Grouped runs are a line with a band.

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
import { nameMetric } from "./metric-menu.tsx";
import { processLine } from "./smoothing.ts";

interface LinesDrawingProps {
  readonly page: RunsPage;
  readonly groups: readonly RunGroup[];
  readonly available: RunMetrics;
  readonly metrics: readonly string[];
}

const POINTS = 900;
type Range = readonly [number, number];

export function LinesDrawing({ page, groups, available, metrics }: LinesDrawingProps) {
  const [zoom, setZoom] = useState<Range | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const isGrouped = page.grouping !== "run";
  const query = {
    metrics,
    axis: page.axis,
    phase: page.axis === "time" && page.phase !== "" ? page.phase : null,
    points: POINTS,
    start: zoom?.[0] ?? null,
    end: zoom?.[1] ?? null,
  };
  const rows = groups.flatMap((group) => group.rows);
  const isLive = rows.some(({ state }) => state === "running");
  const lines = useRunLines({ ...query, runs: isGrouped ? [] : rows.map(({ run }) => run) }, isLive);
  const bandsOf = isGrouped ? groups.map((group) => group.rows.map(({ run }) => run)) : [];
  const bands = useRunBands({ ...query, groups: bandsOf, band: page.band }, isLive);
  // A zoom on one axis is meaningless on another.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the zoom belongs to these
  useEffect(() => setZoom(null), [page.axis, page.phase]);
  const drawn = useMemo(
    () => (isGrouped ? drawBands(bands.value ?? [], groups, page) : drawLines(lines.value ?? [], groups, page)),
    [isGrouped, bands.value, lines.value, groups, page],
  );
  const range = zoom ?? extentOf(drawn);
  const source = isGrouped ? bands : lines;
  return (
    <>
      <RunLegend groups={groups}>
        {zoom && (
          <button type="button" onClick={() => setZoom(null)}>
            Reset zoom
          </button>
        )}
      </RunLegend>
      <Frame
        source={source as typeof lines}
        what="the metrics"
        isEmpty={() => drawn.size === 0}
        empty={<p>No run has the selected metrics over {page.axis}. Select another axis or metric.</p>}
      >
        {() => (
          <div className={styles.charts} data-lines={true} data-figure={true}>
            {metrics.map((metric) => (
              <MetricChart
                key={metric}
                {...titleOf(metric, available)}
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

export function titleOf(metric: string, available: RunMetrics): { title: string; unit: Quantity | null } {
  const entry = available.metrics.find((other) => other.metric === metric);
  return { title: nameMetric(metric, entry?.label ?? null), unit: unitOf(entry) };
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
    const treated = processLine(line, page);
    if (!group || treated.x.length === 0) continue;
    const label = line.place === null ? group.label : `${group.label} · ${line.place}`;
    const key = `${line.run}/${line.place ?? ""}/${line.scope ?? ""}`;
    const { color, unfinished } = group;
    push(drawn, line.metric, { key, label, color, unfinished, ...treated, low: null, high: null });
  }
  return drawn;
}

function drawBands(bands: readonly RunBandLine[], groups: readonly RunGroup[], page: RunsPage): Drawn {
  const drawn = new Map<string, DrawnLine[]>();
  for (const { group: at, metric, x, mean, low, high } of bands) {
    const group = groups[at];
    // Outliers are dropped from single runs only, not from means.
    const treat = (values: Float64Array) => processLine({ x, values }, { ...page, outliers: 0 });
    const line = treat(mean);
    if (!group || line.x.length === 0) continue;
    const [lowValues, highValues] = [treat(low).values, treat(high).values];
    push(drawn, metric, {
      key: group.key,
      label: group.label,
      color: group.color,
      unfinished: group.unfinished,
      ...line,
      low: lowValues,
      high: highValues,
    });
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
