// Hardware metrics of the workload around the trace, if its clock is wall-clock time and there are samples. Samples are seconds
// apart and steps milliseconds, so the trace is a mark in a wider window.

import { useMemo, useRef, useState } from "react";
import { METRICS } from "../../base/catalogue.ts";
import { formatQuantity, type Quantity } from "../../base/format.ts";
import { useSize } from "../../charts/canvas.tsx";
import { type ChartLine, LineChart } from "../../charts/line-chart.tsx";
import { useLines } from "../../data/diagnosis.ts";
import { useWorkload } from "../../data/queries.ts";
import { changeDiagnostics, diagnose, toWindow } from "../../state/diagnostics.ts";
import type { NsWindow } from "../../state/parallel.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import styles from "./hardware.module.css";

const METRIC_NAMES = ["gpu_util_ratio", "power_watts", "memory_used_bytes"] as const;
/** On both sides of the visible window: older samples are stored minutes apart. */
const MARGIN_MS = 300_000;

interface HardwareProps {
  readonly workload: string;
  readonly originMs: number;
  readonly window: NsWindow;
}

export function Hardware({ workload, originMs, window }: HardwareProps) {
  const change = useChangeScreen();
  const place = useRef<HTMLDivElement>(null);
  const { width } = useSize(place);
  const shown = { fromMs: originMs + window.fromNs / 1e6, toMs: originMs + window.toNs / 1e6 };
  const startMs = Math.floor((shown.fromMs - MARGIN_MS) / 1000) * 1000;
  const endMs = Math.ceil((shown.toMs + MARGIN_MS) / 1000) * 1000;
  const points = Math.max(0, Math.floor(width / METRIC_NAMES.length / 50) * 50);
  const heldUnits = useHeldUnits(workload, startMs, endMs);
  const query = { startMs, endMs, metrics: METRIC_NAMES, units: [], points, summary: "median" } as const;
  const lines = useLines(workload, query, heldUnits === true);
  const sampledMetrics = METRIC_NAMES.filter((metric) =>
    lines.value?.some((line) => line.metric === metric && line.values.length > 0),
  );
  return (
    <section ref={place} className={styles.hardware} aria-label="Hardware around the trace">
      <header>
        <h2>Hardware of {workload} around this window</h2>
        {sampledMetrics.length === 0 && (
          <span>
            {heldUnits !== false && lines.value === undefined && !lines.problem
              ? "Loading…"
              : "No samples of its GPUs in this window."}
          </span>
        )}
        <Button
          onClick={() =>
            change((screen) => changeDiagnostics({ window: toWindow(startMs, endMs) })(diagnose(workload)(screen)))
          }
        >
          Diagnose this window
        </Button>
      </header>
      {sampledMetrics.length > 0 && (
        <div className={styles.charts}>
          {sampledMetrics.map((metric) => (
            <MetricChart
              key={metric}
              title={METRICS[metric].label}
              unit={METRICS[metric].unit}
              lines={(lines.value ?? []).filter((line) => line.metric === metric)}
              startMs={startMs}
              endMs={endMs}
              shown={shown}
            />
          ))}
        </div>
      )}
    </section>
  );
}

/** Whether the workload held GPUs in the window: a trace may be of another run. Null: not loaded yet. */
function useHeldUnits(workload: string, startMs: number, endMs: number): boolean | null {
  const detail = useWorkload(workload).value;
  if (detail === undefined) return null;
  return detail.allocations.some(({ from_at, to_at }) => from_at < endMs && (to_at ?? Infinity) > startMs);
}

interface MetricChartProps {
  readonly title: string;
  readonly unit: Quantity;
  readonly lines: readonly { readonly unit: string; readonly timesMs: Float64Array; readonly values: Float64Array }[];
  readonly startMs: number;
  readonly endMs: number;
  readonly shown: { readonly fromMs: number; readonly toMs: number };
}

function MetricChart({ title, unit, lines, startMs, endMs, shown }: MetricChartProps) {
  const [cursorMs, setCursor] = useState<number | null>(null);
  const drawn = useMemo<readonly ChartLine[]>(
    () =>
      lines.map(({ unit, timesMs, values }) => ({
        key: unit,
        color: "var(--accent)",
        timesMs,
        values,
        width: 1,
        alpha: lines.length > 8 ? 0.35 : 0.8,
        isDashed: false,
      })),
    [lines],
  );
  const maximum = lines.reduce((high, { values }) => values.reduce((top, value) => Math.max(value, top), high), 0);
  // Ratios are drawn up to 100 %.
  const high = unit === "ratio" ? 1 : maximum;
  const minWidthMs = (endMs - startMs) / 400;
  const spans = [{ ...shown, toMs: Math.max(shown.toMs, shown.fromMs + minWidthMs), color: "var(--warn)", alpha: 0.5 }];
  return (
    <div>
      <small>
        <span>
          {title} <b>{formatNearest(lines, cursorMs ?? (shown.fromMs + shown.toMs) / 2, unit)}</b>
        </span>
        <span>0 to {formatQuantity(high, unit)}</span>
      </small>
      <div className={styles.chart}>
        <LineChart
          label={`${title} around the trace`}
          startMs={startMs}
          endMs={endMs}
          low={0}
          high={high || 1}
          lines={drawn}
          bands={[]}
          spans={spans}
          cursorMs={cursorMs}
          drawn={null}
          onCursor={setCursor}
          onDraw={() => {}}
        />
      </div>
    </div>
  );
}

/** The samples nearest to a time: one value, or the minimum and maximum over GPUs. */
export function formatNearest(lines: MetricChartProps["lines"], atMs: number, unit: Quantity): string {
  const values = lines.flatMap(({ timesMs, values: samples }) => {
    let best = 0;
    timesMs.forEach((time, place) => {
      if (Math.abs(time - atMs) < Math.abs((timesMs[best] ?? 0) - atMs)) best = place;
    });
    const value = samples[best] ?? Number.NaN;
    return Number.isNaN(value) ? [] : [value];
  });
  if (values.length === 0) return "";
  const [low, high] = [formatQuantity(Math.min(...values), unit), formatQuantity(Math.max(...values), unit)];
  return low === high ? low : `${low} to ${high}`;
}
