// Timelines of the selected GPUs, or of clusters where there are many: one row per metric on a shared time axis, with events.
// Drawing a range zooms the whole page; times of brushed scatter points are highlighted.

import { useDeferredValue, useMemo, useRef } from "react";
import type { DiagnosisAnswer } from "../../api/generated.ts";
import type { SeriesLine } from "../../api/series.ts";
import { formatPlural } from "../../base/format.ts";
import { formatDuration } from "../../base/time.ts";
import { useSize } from "../../charts/canvas.tsx";
import type { TimeRange } from "../../charts/line-chart.tsx";
import { comparingOf, spanOf, useDiagnosisEvents, useLines } from "../../data/diagnosis.ts";
import { type DiagnosticsPage, toWindow } from "../../state/diagnostics.ts";
import { Button } from "../../widgets/button.tsx";
import { Frame } from "../../widgets/frame.tsx";
import { MetricMenu } from "./metric-menu.tsx";
import { PanelBox } from "./panel-box.tsx";
import { findShownWindow, useIsRecorded, useSetPage } from "./shown.ts";
import styles from "./timeline-panel.module.css";
import { Rows } from "./timeline-rows.tsx";
import { chooseUnits, chooseZoom, findWholeClusters, MAX_LINES, MAX_REQUESTED } from "./timeline-shapes.ts";
import { formatWindow } from "./words.ts";

const DEFAULT_METRICS = [
  "gpu_util_ratio",
  "power_watts",
  "nvlink_bytes_per_second",
  "sm_active_ratio",
  "memory_used_bytes",
];
const DEFAULT_COUNT = 3;
/** Name and axis of a metric. */
const NAME_PX = 144;
const NO_SPANS: readonly TimeRange[] = [];

interface TimelinePanelProps {
  readonly answer: DiagnosisAnswer;
  readonly page: DiagnosticsPage;
  readonly pointed?: string | null;
  /** Times to highlight. */
  readonly highlighted?: readonly TimeRange[];
  readonly subject?: string;
  /** Whether the whole life can be shown again. */
  readonly canLeave?: boolean;
  /** Reports the range while it is drawn. */
  onDraw?(range: TimeRange | null): void;
}

export function TimelinePanel({
  answer,
  page,
  pointed = null,
  highlighted = NO_SPANS,
  subject,
  canLeave = true,
  onDraw,
}: TimelinePanelProps) {
  const set = useSetPage();
  const isRecorded = useIsRecorded();
  const place = useRef<HTMLDivElement>(null);
  const { width } = useSize(place);
  const metrics = listMetrics(answer, page.lines);
  const requestedUnits = useMemo(() => chooseUnits(answer, page.units), [answer, page.units]);
  const comparing = comparingOf(page);
  const points = Math.max(0, Math.ceil((width - NAME_PX) / 50) * 50);
  const lines = useLines(answer.workload, {
    ...spanOf(page.window),
    metrics,
    units: requestedUnits,
    points,
    summary: answer.units.length > MAX_REQUESTED ? { clustersBy: comparing } : "median",
  });
  const pointedLines = usePointedLines(answer, page, pointed, { metrics, points });
  const events = useDiagnosisEvents(answer.workload, page.window).value ?? [];
  const whole = findShownWindow(answer, page);
  const { endMs } = whole;
  const startMs = page.window === null ? findFirstSample(lines.value ?? [], whole) : whole.startMs;
  const isPart = canLeave && page.window !== null && page.window.fromMs > 0;
  const zoom = (range: TimeRange) => set({ window: toWindow(range.fromMs, range.toMs) });
  const brushed = highlighted.length > 0 ? chooseZoom(highlighted, endMs - startMs) : null;
  const tools = (
    <>
      {brushed && (
        <Button className={styles.small} onClick={() => zoom(brushed.range)}>
          {brushed.title}
        </Button>
      )}
      {isPart && (
        <Button className={styles.small} onClick={() => set({ window: null })}>
          Whole life
        </Button>
      )}
      <span className={styles.window}>{formatWindow(startMs, endMs)}</span>
      {!isRecorded && (
        <MetricMenu metrics={answer.metrics} chosen={metrics} onChange={(names) => set({ lines: names }, "replace")} />
      )}
    </>
  );
  return (
    <PanelBox
      title={subject ? `Timeline, ${subject}` : "Timeline"}
      tools={tools}
      file={`${answer.workload}-timeline`.replaceAll(/[^\w-]+/g, "-")}
    >
      <p className={styles.about}>
        {describeLines(answer, page, requestedUnits)}
        {startMs > whole.startMs &&
          ` Begins with the first sample, ${formatDuration((startMs - whole.startMs) / 1000)} in.`}
        {!isRecorded && " Drag to select a time range and zoom all panels to it."}
      </p>
      <div ref={place} className={styles.body} data-lit-spans={highlighted.length} aria-busy={!lines.isCurrent}>
        <Frame
          source={lines}
          what="the timelines"
          isEmpty={(all) => all.length === 0}
          empty="No samples in this window."
        >
          {(all) => (
            <Rows
              answer={answer}
              page={page}
              startMs={startMs}
              endMs={endMs}
              all={pointedLines ? [...all, ...pointedLines] : all}
              metrics={metrics}
              events={events}
              width={Math.max(0, width - NAME_PX)}
              pointed={pointed}
              highlighted={highlighted}
              onZoom={zoom}
              onDraw={onDraw ?? (() => {})}
              onClear={isPart ? () => set({ window: null }) : undefined}
            />
          )}
        </Frame>
      </div>
    </PanelBox>
  );
}

/** Of the window this share may be empty at its beginning; hours that nobody measured are left out. */
const EMPTY = 0.03;

function findFirstSample(
  lines: readonly SeriesLine[],
  { startMs, endMs }: { readonly startMs: number; readonly endMs: number },
): number {
  const first = lines.reduce((least, { timesMs }) => Math.min(least, timesMs[0] ?? endMs), endMs);
  return first < endMs && first - startMs > EMPTY * (endMs - startMs) ? first : startMs;
}

function listMetrics({ metrics }: DiagnosisAnswer, requested: readonly string[]): readonly string[] {
  const available = metrics.filter(({ has_samples }) => has_samples).map(({ name }) => name);
  if (requested.length > 0) return requested.filter((name) => available.includes(name));
  return DEFAULT_METRICS.filter((name) => available.includes(name)).slice(0, DEFAULT_COUNT);
}

/** The line of the GPU under the pointer, where lines of single GPUs are not loaded. */
function usePointedLines(
  { workload, units }: DiagnosisAnswer,
  page: DiagnosticsPage,
  pointed: string | null,
  { metrics, points }: { readonly metrics: readonly string[]; readonly points: number },
): readonly SeriesLine[] | null {
  const unit = useDeferredValue(pointed);
  const isEnabled = unit !== null && units.length > MAX_REQUESTED;
  const query = { ...spanOf(page.window), metrics, units: unit ? [unit] : [], points, summary: "none" as const };
  const lines = useLines(workload, query, isEnabled);
  return isEnabled && lines.isCurrent ? (lines.value?.filter((line) => line.unit === unit) ?? null) : null;
}

function describeLines(answer: DiagnosisAnswer, page: DiagnosticsPage, requestedUnits: readonly string[]): string {
  const shown = page.units.length > 0 ? page.units.length : answer.units.length;
  const isMany = shown > MAX_LINES;
  const isSampled = answer.units.length > MAX_REQUESTED && findWholeClusters(answer.clusters, page.units) === null;
  const subject = page.units.length > 0 ? formatPlural(shown, "selected GPU") : `All ${formatPlural(shown, "GPU")}`;
  const shape = isMany ? "median and 90 % range of each cluster" : "one line per GPU";
  const sample = isSampled && requestedUnits.length < shown ? `, from ${requestedUnits.length} of them` : "";
  const reference =
    page.units.length > 0
      ? answer.units.length <= MAX_REQUESTED
        ? "; dashed: median of the others"
        : "; dashed: median of all"
      : "";
  return `${subject}: ${shape}${sample}${reference}.`;
}
