// What the GPUs of the workload did around the trace, where its clock is the world's and they were measured. Samples are seconds
// apart and steps milliseconds: the trace is a mark in a wider window.

import { useMemo, useRef, useState } from "react";
import { useSize } from "../../charts/canvas.tsx";
import { type ChartLine, LineChart } from "../../charts/line-chart.tsx";
import { useLines } from "../../data/diagnosis.ts";
import { changeDiagnostics, diagnose, toWindow } from "../../state/diagnostics.ts";
import type { NsWindow } from "../../state/parallel.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import styles from "./parallel.module.css";

const METRICS = ["gpu_util_ratio", "power_watts", "memory_used_bytes"] as const;
const TITLES: Readonly<Record<string, string>> = {
  gpu_util_ratio: "GPU utilisation",
  power_watts: "Power",
  memory_used_bytes: "Memory",
};
/** On both sides of the window in sight. */
const AROUND_MS = 60_000;

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
  const startMs = Math.floor((shown.fromMs - AROUND_MS) / 1000) * 1000;
  const endMs = Math.ceil((shown.toMs + AROUND_MS) / 1000) * 1000;
  const points = Math.max(0, Math.floor(width / METRICS.length / 50) * 50);
  const lines = useLines(workload, { startMs, endMs, metrics: METRICS, units: [], points, summary: "median" });
  const known = METRICS.filter((metric) =>
    lines.value?.some((line) => line.metric === metric && line.values.length > 0),
  );
  return (
    <section ref={place} className={styles.hardware} aria-label="Hardware around the trace">
      <header>
        <h2>Hardware of {workload} around this window</h2>
        {known.length === 0 && (
          <span>
            {lines.value === undefined && !lines.problem ? "Asking…" : "Its GPUs were not measured at this time."}
          </span>
        )}
        <Button
          onClick={() =>
            change((screen) => changeDiagnostics({ window: toWindow(startMs, endMs) })(diagnose(workload)(screen)))
          }
        >
          Diagnostics of this time
        </Button>
      </header>
      {known.length > 0 && (
        <div className={styles.charts}>
          {known.map((metric) => (
            <MetricChart
              key={metric}
              title={TITLES[metric] ?? metric}
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

interface MetricChartProps {
  readonly title: string;
  readonly lines: readonly { readonly unit: string; readonly timesMs: Float64Array; readonly values: Float64Array }[];
  readonly startMs: number;
  readonly endMs: number;
  readonly shown: { readonly fromMs: number; readonly toMs: number };
}

function MetricChart({ title, lines, startMs, endMs, shown }: MetricChartProps) {
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
  const high = lines.reduce((most, { values }) => values.reduce((top, value) => Math.max(value, top), most), 0);
  const least = (endMs - startMs) / 400;
  const spans = [{ ...shown, toMs: Math.max(shown.toMs, shown.fromMs + least), color: "var(--warn)", alpha: 0.5 }];
  return (
    <div>
      <small>{title}</small>
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
