// The course of the selected GPUs, or of the clusters where there are many: one row per metric over the same time, with what
// happened on the axis. Drawing a range zooms the whole page to it; what the scatter's brush holds is lit.

import { useDeferredValue, useMemo, useRef } from "react";
import type { DiagnosisAnswer } from "../../api/generated.ts";
import type { SeriesLine } from "../../api/series.ts";
import { formatPlural } from "../../base/format.ts";
import { useSize } from "../../charts/canvas.tsx";
import type { TimeRange } from "../../charts/line-chart.tsx";
import { comparingOf, spanOf, useDiagnosisEvents, useLines } from "../../data/diagnosis.ts";
import { type DiagnosticsPage, toWindow } from "../../state/diagnostics.ts";
import { Button } from "../../widgets/button.tsx";
import { Frame } from "../../widgets/frame.tsx";
import { MetricMenu } from "./metric-menu.tsx";
import { PanelBox } from "./panel-box.tsx";
import { findShown, useSetPage } from "./shown.ts";
import styles from "./timeline-panel.module.css";
import { Rows } from "./timeline-rows.tsx";
import { chooseUnits, chooseZoom, findWholeClusters, MOST_ASKED, MOST_LINES } from "./timeline-shapes.ts";
import { sayWindow } from "./words.ts";

const USUAL = ["gpu_util_ratio", "power_watts", "nvlink_bytes_per_second", "sm_active_ratio", "memory_used_bytes"];
const USUAL_COUNT = 3;
const NAME_PX = 104;
const NO_SPANS: readonly TimeRange[] = [];

interface TimelinePanelProps {
  readonly answer: DiagnosisAnswer;
  readonly page: DiagnosticsPage;
  readonly pointed?: string | null;
  /** Times to light up. */
  readonly lit?: readonly TimeRange[];
  readonly whose?: string;
  /** Whether the reader can go back to the whole life. */
  readonly canLeave?: boolean;
  /** What is being drawn, for others to follow. */
  onDraw?(range: TimeRange | null): void;
}

export function TimelinePanel({
  answer,
  page,
  pointed = null,
  lit = NO_SPANS,
  whose,
  canLeave = true,
  onDraw,
}: TimelinePanelProps) {
  const set = useSetPage();
  const place = useRef<HTMLDivElement>(null);
  const { width } = useSize(place);
  const metrics = listMetrics(answer, page.lines);
  const asked = useMemo(() => chooseUnits(answer, page.units), [answer, page.units]);
  const comparing = comparingOf(page);
  const points = Math.max(0, Math.ceil((width - NAME_PX) / 50) * 50);
  const lines = useLines(answer.workload, {
    ...spanOf(page.window),
    metrics,
    units: asked,
    points,
    summary: answer.units.length > MOST_ASKED ? { clustersBy: comparing } : "median",
  });
  const beside = usePointed(answer, page, pointed, { metrics, points });
  const events = useDiagnosisEvents(answer.workload, page.window).value ?? [];
  const { startMs, endMs } = findShown(answer, page);
  const isPart = canLeave && page.window !== null && page.window.fromMs > 0;
  const zoom = (range: TimeRange) => set({ window: toWindow(range.fromMs, range.toMs) });
  const brushed = lit.length > 0 ? chooseZoom(lit, endMs - startMs) : null;
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
      <span className={styles.window}>{sayWindow(startMs, endMs)}</span>
      <MetricMenu metrics={answer.metrics} chosen={metrics} onChange={(names) => set({ lines: names }, "replace")} />
    </>
  );
  return (
    <PanelBox
      title={whose ? `Timeline, ${whose}` : "Timeline"}
      tools={tools}
      file={`${answer.workload}-timeline`.replaceAll(/[^\w-]+/g, "-")}
    >
      <p className={styles.about}>{describeLines(answer, page, asked)}</p>
      <div ref={place} className={styles.body} data-lit-spans={lit.length} aria-busy={!lines.isCurrent}>
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
              all={beside ? [...all, ...beside] : all}
              metrics={metrics}
              events={events}
              width={Math.max(0, width - NAME_PX)}
              pointed={pointed}
              lit={lit}
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

function listMetrics({ metrics }: DiagnosisAnswer, wanted: readonly string[]): readonly string[] {
  const known = metrics.filter(({ has_samples }) => has_samples).map(({ name }) => name);
  if (wanted.length > 0) return wanted.filter((name) => known.includes(name));
  return USUAL.filter((name) => known.includes(name)).slice(0, USUAL_COUNT);
}

/** The line of the GPU that is pointed at, where lines of single GPUs are not there anyway. */
function usePointed(
  { workload, units }: DiagnosisAnswer,
  page: DiagnosticsPage,
  pointed: string | null,
  { metrics, points }: { readonly metrics: readonly string[]; readonly points: number },
): readonly SeriesLine[] | null {
  const unit = useDeferredValue(pointed);
  const isAsked = unit !== null && units.length > MOST_ASKED;
  const query = { ...spanOf(page.window), metrics, units: unit ? [unit] : [], points, summary: "none" as const };
  const lines = useLines(workload, query, isAsked);
  return isAsked && lines.isCurrent ? (lines.value?.filter((line) => line.unit === unit) ?? null) : null;
}

function describeLines(answer: DiagnosisAnswer, page: DiagnosticsPage, asked: readonly string[]): string {
  const shown = page.units.length > 0 ? page.units.length : answer.units.length;
  const isMany = shown > MOST_LINES;
  const isSampled = answer.units.length > MOST_ASKED && findWholeClusters(answer.clusters, page.units) === null;
  const what = page.units.length > 0 ? `${formatPlural(shown, "selected GPU")}` : `all ${formatPlural(shown, "GPU")}`;
  const how = isMany ? "median and 90 % range of each cluster" : "one line each";
  const sample = isSampled && asked.length < shown ? `, from ${asked.length} of them` : "";
  const against =
    page.units.length > 0
      ? answer.units.length <= MOST_ASKED
        ? "; dashed: median of the others"
        : "; dashed: median of all"
      : "";
  return `Of ${what}: ${how}${sample}${against}. Drag over a time to zoom everything to it.`;
}
