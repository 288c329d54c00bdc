// The course of the selected GPUs, or of the clusters where there are many: one row per metric over the same time, with what
// happened on the axis. Drawing a range zooms the whole page to it; what the scatter's brush holds is lit.

import { useDeferredValue, useMemo, useRef, useState } from "react";
import type { DiagnosisAnswer, WorkloadEvent } from "../../api/generated.ts";
import type { SeriesLine } from "../../api/series.ts";
import { formatPlural } from "../../base/format.ts";
import { useSize } from "../../charts/canvas.tsx";
import { type ChartBand, type ChartLine, type ChartSpan, LineChart, type TimeRange } from "../../charts/line-chart.tsx";
import { TimeAxis } from "../../charts/time-axis.tsx";
import { comparingOf, spanOf, useDiagnosisEvents, useLines } from "../../data/diagnosis.ts";
import { type DiagnosticsPage, toWindow } from "../../state/diagnostics.ts";
import { Button } from "../../widgets/button.tsx";
import { Frame } from "../../widgets/frame.tsx";
import { clusterColor } from "./cluster-colors.ts";
import { EventStrip } from "./event-strip.tsx";
import { MetricMenu } from "./metric-menu.tsx";
import { PanelBox } from "./panel-box.tsx";
import { findShown, useSetPage } from "./shown.ts";
import styles from "./timeline-panel.module.css";
import { findBand, findDomain, type Summary, summarize, valueAt } from "./timelines.ts";
import { findMetric, sayValue, sayWindow } from "./words.ts";

const USUAL = ["gpu_util_ratio", "power_watts", "nvlink_bytes_per_second", "sm_active_ratio", "memory_used_bytes"];
const USUAL_COUNT = 3;
/** More lines than these are a median and a band per cluster. */
const MOST_LINES = 12;
/** Of so many GPUs the server gives every line; of more, only named ones. */
const MOST_ASKED = 64;
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
  const zoom = (range: TimeRange) => set({ window: toWindow(range.fromMs, range.toMs) });
  const brushed = lit.length > 0 ? chooseZoom(lit, endMs - startMs) : null;
  const tools = (
    <>
      {brushed && (
        <Button className={styles.small} onClick={() => zoom(brushed.range)}>
          {brushed.title}
        </Button>
      )}
      {canLeave && page.window && (
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

/** Which GPUs to name: none where all come anyway, or whole clusters are shown; of many others a sample. */
export function chooseUnits(
  { units, clusters }: Pick<DiagnosisAnswer, "units" | "clusters">,
  selected: readonly string[],
): readonly string[] {
  if (units.length <= MOST_ASKED) return [];
  const held = new Set(selected);
  const wanted = units.filter(({ unit }) => held.has(unit)).map(({ unit }) => unit);
  return findWholeClusters(clusters, wanted) === null ? takeEvenly(wanted, MOST_ASKED) : [];
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

/** The clusters that the selection is made of, all where there is none; null where it has parts of some, or few GPUs. */
export function findWholeClusters(
  clusters: readonly Pick<DiagnosisAnswer["clusters"][number], "label" | "units">[],
  selected: readonly string[],
): readonly number[] | null {
  if (selected.length === 0) return clusters.map(({ label }) => label);
  if (selected.length <= MOST_LINES) return null;
  const held = new Set(selected);
  const touched = clusters.filter(({ units }) => units.some((unit) => held.has(unit)));
  const covered = touched.reduce((sum, { units }) => sum + units.length, 0);
  return covered === held.size ? touched.map(({ label }) => label) : null;
}

function takeEvenly<T>(all: readonly T[], most: number): readonly T[] {
  if (all.length <= most) return all;
  return Array.from({ length: most }, (_, at) => all[Math.floor((at / most) * all.length)]).filter(
    (one) => one !== undefined,
  );
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

/** Brushed times that are spread over the whole window are looked at where they last longest. */
export function chooseZoom(spans: readonly TimeRange[], windowMs: number): { range: TimeRange; title: string } {
  const fromMs = Math.min(...spans.map((span) => span.fromMs));
  const toMs = Math.max(...spans.map((span) => span.toMs));
  if (spans.length === 1 || toMs - fromMs < SPREAD * windowMs) {
    return { range: widen({ fromMs, toMs }, 0.05), title: "Zoom to brushed" };
  }
  const longest = spans.reduce((best, span) => (span.toMs - span.fromMs > best.toMs - best.fromMs ? span : best));
  return { range: widen(longest, 1), title: "Zoom to the longest" };
}

const SPREAD = 0.6;
const LEAST_ROOM_MS = 60_000;

function widen({ fromMs, toMs }: TimeRange, share: number): TimeRange {
  const roomMs = Math.max(LEAST_ROOM_MS, (toMs - fromMs) * share);
  return { fromMs: fromMs - roomMs, toMs: toMs + roomMs };
}

interface RowsProps {
  readonly answer: DiagnosisAnswer;
  readonly page: DiagnosticsPage;
  readonly all: readonly SeriesLine[];
  readonly metrics: readonly string[];
  readonly events: readonly WorkloadEvent[];
  readonly width: number;
  readonly pointed: string | null;
  readonly lit: readonly TimeRange[];
  onZoom(range: TimeRange): void;
  onDraw(range: TimeRange | null): void;
}

function Rows({ answer, page, all, metrics, events, width, pointed, lit, onZoom, onDraw }: RowsProps) {
  const [cursorMs, setCursor] = useState<number | null>(null);
  const [drawn, setDrawn] = useState<TimeRange | null>(null);
  const { startMs, endMs } = findShown(answer, page);
  const spans = useMemo(() => toSpans(lit, events, endMs), [lit, events, endMs]);
  const draw = (range: TimeRange | null, isDone: boolean) => {
    setDrawn(isDone ? null : range);
    onDraw(isDone ? null : range);
    if (range && isDone) onZoom(range);
  };
  return (
    <div className={styles.rows} style={{ gridTemplateRows: `repeat(${metrics.length}, minmax(44px, 1fr)) auto` }}>
      {metrics.map((name) => (
        <MetricRow
          key={name}
          name={name}
          answer={answer}
          startMs={startMs}
          endMs={endMs}
          selected={page.units}
          all={all}
          width={width}
          pointed={pointed}
          spans={spans}
          cursorMs={cursorMs}
          drawn={drawn}
          onCursor={setCursor}
          onDraw={draw}
        />
      ))}
      <span className={styles.moment}>
        {cursorMs === null ? "events" : new Date(cursorMs).toLocaleTimeString("en-GB")}
      </span>
      <div>
        <EventStrip events={events} startMs={startMs} endMs={endMs} />
        <TimeAxis startMs={startMs} endMs={endMs} width={width} />
      </div>
    </div>
  );
}

/** Violations are shaded faintly, what was brushed clearly. */
function toSpans(lit: readonly TimeRange[], events: readonly WorkloadEvent[], endMs: number): readonly ChartSpan[] {
  const broken = events.filter(({ kind }) => kind === "violation");
  return [
    ...broken.map(({ at, until }) => ({ fromMs: at, toMs: until ?? endMs, color: "var(--warn)", alpha: 0.025 })),
    ...lit.map(({ fromMs, toMs }) => ({ fromMs, toMs, color: "var(--warn)", alpha: 0.22 })),
  ];
}

interface MetricRowProps {
  readonly name: string;
  readonly answer: DiagnosisAnswer;
  readonly startMs: number;
  readonly endMs: number;
  readonly selected: readonly string[];
  readonly all: readonly SeriesLine[];
  readonly width: number;
  readonly pointed: string | null;
  readonly spans: readonly ChartSpan[];
  readonly cursorMs: number | null;
  readonly drawn: TimeRange | null;
  onCursor(timeMs: number | null): void;
  onDraw(range: TimeRange | null, isDone: boolean): void;
}

function MetricRow(props: MetricRowProps) {
  const { name, answer, startMs, endMs, selected, all, width, pointed, spans, cursorMs, drawn, onCursor, onDraw } =
    props;
  const metric = findMetric(answer.metrics, name);
  const of = useMemo(() => all.filter((line) => line.metric === name), [all, name]);
  const shapes = useMemo(
    () => drawShapes(of, answer, { startMs, endMs, width }, selected, pointed),
    [of, answer, startMs, endMs, selected, pointed, width],
  );
  const [low, high] = useMemo(() => findDomain(of, metric?.unit ?? ""), [of, metric?.unit]);
  const withinMs = ((endMs - startMs) / Math.max(1, width)) * 12;
  const readings =
    cursorMs === null
      ? []
      : shapes.lines
          .filter(({ isRead }) => isRead)
          .slice(0, 3)
          .map(({ key, color, timesMs, values }) => ({
            key,
            color,
            value: valueAt(timesMs, values, cursorMs, withinMs),
          }));
  return (
    <>
      <div className={styles.name}>
        <b data-drawn-label={true}>{metric?.label ?? name}</b>
        {readings.length > 0 ? (
          readings.map(({ key, color, value }) => (
            <span key={key} style={{ color }}>
              {sayValue(value, metric?.unit)}
            </span>
          ))
        ) : (
          <span>
            {sayValue(low, metric?.unit)} – {sayValue(high, metric?.unit)}
          </span>
        )}
      </div>
      <div className={styles.chart}>
        <LineChart
          label={`${metric?.label ?? name} from ${sayWindow(startMs, endMs)}, ${sayValue(low, metric?.unit)} to ${sayValue(high, metric?.unit)}; arrows point, Shift with arrows draws a range, Enter zooms`}
          startMs={startMs}
          endMs={endMs}
          low={low}
          high={high}
          lines={shapes.lines}
          bands={shapes.bands}
          spans={spans}
          cursorMs={cursorMs}
          drawn={drawn}
          onCursor={onCursor}
          onDraw={onDraw}
        />
      </div>
    </>
  );
}

interface Shapes {
  /** `isRead`: worth its value at the cursor. */
  readonly lines: readonly (ChartLine & { readonly isRead: boolean })[];
  readonly bands: readonly ChartBand[];
}

interface GrowingShapes {
  readonly lines: (ChartLine & { isRead: boolean })[];
  readonly bands: ChartBand[];
}

function addBand(shapes: GrowingShapes, label: number | null, band: Summary | null): void {
  if (band === null) return;
  const { timesMs, median, low, high } = band;
  const key = `cluster ${label}`;
  const color = clusterColor(label);
  shapes.bands.push({ key, color, timesMs, low, high });
  shapes.lines.push({ ...PLAIN, key, color, timesMs, values: median, width: 1.3, isRead: true });
}

function drawShapes(
  of: readonly SeriesLine[],
  { units, clusters }: DiagnosisAnswer,
  { startMs, endMs, width }: { readonly startMs: number; readonly endMs: number; readonly width: number },
  selected: readonly string[],
  pointed: string | null,
): Shapes {
  const cluster = new Map(units.map((unit) => [unit.unit, unit.cluster]));
  const held = new Set(selected);
  const own = of.filter(({ unit }) => cluster.has(unit));
  const whole = units.length > MOST_ASKED ? findWholeClusters(clusters, selected) : null;
  const shown = whole ? [] : held.size > 0 ? own.filter(({ unit }) => held.has(unit)) : own;
  const others = held.size > 0 && units.length <= MOST_ASKED ? own.filter(({ unit }) => !held.has(unit)) : [];
  const steps = Math.max(20, Math.floor(width / 2));
  const shapes: GrowingShapes = { lines: [], bands: [] };
  for (const label of whole ?? []) addBand(shapes, label, findBand(of, label));
  if (shown.length > MOST_LINES) {
    const labels = [...new Set(shown.map(({ unit }) => cluster.get(unit) ?? null))].sort(
      (a, b) => (a ?? 99) - (b ?? 99),
    );
    for (const label of labels) {
      const members = shown.filter(({ unit }) => (cluster.get(unit) ?? null) === label);
      addBand(shapes, label, summarize(members, startMs, endMs, steps));
    }
  } else {
    for (const { unit, timesMs, values } of shown) {
      shapes.lines.push({
        ...PLAIN,
        key: unit,
        color: clusterColor(cluster.get(unit) ?? null),
        timesMs,
        values,
        isRead: true,
      });
    }
  }
  const median = others.length > 0 ? summarize(others, startMs, endMs, steps) : null;
  const summary = of.find(({ unit }) => unit === "median");
  if (held.size > 0 && (median || summary)) {
    shapes.lines.push({
      ...PLAIN,
      key: "median",
      color: "var(--muted)",
      timesMs: median?.timesMs ?? summary?.timesMs ?? new Float64Array(0),
      values: median?.median ?? summary?.values ?? new Float64Array(0),
      isDashed: true,
      isRead: true,
    });
  }
  const line = pointed === null ? undefined : own.find(({ unit }) => unit === pointed);
  if (line) {
    const { timesMs, values } = line;
    shapes.lines.push({ ...PLAIN, key: "pointed", color: "var(--text)", timesMs, values, width: 1.4, isRead: false });
  }
  return shapes;
}

const PLAIN = { width: 1.1, alpha: 0.9, isDashed: false } as const;
