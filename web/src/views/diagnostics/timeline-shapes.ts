// Shapes of the timeline: a line per selected GPU, or a median and a band per cluster; which GPUs to request, and which time to
// zoom to. Pure.

import type { DiagnosisAnswer } from "../../api/generated.ts";
import type { SeriesLine } from "../../api/series.ts";
import type { ChartBand, ChartLine, TimeRange } from "../../charts/line-chart.tsx";
import { clusterColor } from "./cluster-colors.ts";
import { findBand, type Summary, summarize } from "./timelines.ts";

/** More lines are drawn as a median and a band per cluster. */
export const MAX_LINES = 12;
/** The server returns the lines of all GPUs up to this number, and beyond it only requested ones. */
export const MAX_REQUESTED = 64;

/** GPUs to request: none where all are returned anyway or whole clusters are shown; a sample of many others. */
export function chooseUnits(
  { units, clusters }: Pick<DiagnosisAnswer, "units" | "clusters">,
  selected: readonly string[],
): readonly string[] {
  if (units.length <= MAX_REQUESTED) return [];
  const selectedUnits = new Set(selected);
  const requestedUnits = units.filter(({ unit }) => selectedUnits.has(unit)).map(({ unit }) => unit);
  return findWholeClusters(clusters, requestedUnits) === null ? sampleEvenly(requestedUnits, MAX_REQUESTED) : [];
}

/** The clusters that make up the selection, all without one; null where it contains parts of clusters, or few GPUs. */
export function findWholeClusters(
  clusters: readonly Pick<DiagnosisAnswer["clusters"][number], "label" | "units">[],
  selected: readonly string[],
): readonly number[] | null {
  if (selected.length === 0) return clusters.map(({ label }) => label);
  if (selected.length <= MAX_LINES) return null;
  const selectedUnits = new Set(selected);
  const touched = clusters.filter(({ units }) => units.some((unit) => selectedUnits.has(unit)));
  const covered = touched.reduce((sum, { units }) => sum + units.length, 0);
  return covered === selectedUnits.size ? touched.map(({ label }) => label) : null;
}

function sampleEvenly<T>(all: readonly T[], maximum: number): readonly T[] {
  if (all.length <= maximum) return all;
  return Array.from({ length: maximum }, (_, at) => all[Math.floor((at / maximum) * all.length)]).filter(
    (value) => value !== undefined,
  );
}

/** The range of all brushed times; where they are spread over the window, the longest of them. */
export function chooseZoom(spans: readonly TimeRange[], windowMs: number): { range: TimeRange; title: string } {
  const fromMs = Math.min(...spans.map((span) => span.fromMs));
  const toMs = Math.max(...spans.map((span) => span.toMs));
  if (spans.length === 1 || toMs - fromMs < SPREAD_SHARE * windowMs) {
    return { range: addMargin({ fromMs, toMs }, 0.05), title: "Zoom to brush" };
  }
  const longest = spans.reduce((best, span) => (span.toMs - span.fromMs > best.toMs - best.fromMs ? span : best));
  return { range: addMargin(longest, 1), title: "Zoom to the longest" };
}

const SPREAD_SHARE = 0.6;
const MIN_MARGIN_MS = 60_000;

function addMargin({ fromMs, toMs }: TimeRange, share: number): TimeRange {
  const marginMs = Math.max(MIN_MARGIN_MS, (toMs - fromMs) * share);
  return { fromMs: fromMs - marginMs, toMs: toMs + marginMs };
}

interface Shapes {
  /** `isRead`: its value is shown at the cursor. */
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

export function drawShapes(
  lines: readonly SeriesLine[],
  { units, clusters }: DiagnosisAnswer,
  { startMs, endMs, width }: { readonly startMs: number; readonly endMs: number; readonly width: number },
  selected: readonly string[],
  pointed: string | null,
): Shapes {
  const cluster = new Map(units.map((unit) => [unit.unit, unit.cluster]));
  const selectedUnits = new Set(selected);
  const unitLines = lines.filter(({ unit }) => cluster.has(unit));
  const wholeClusters = units.length > MAX_REQUESTED ? findWholeClusters(clusters, selected) : null;
  const shownLines = wholeClusters
    ? []
    : selectedUnits.size > 0
      ? unitLines.filter(({ unit }) => selectedUnits.has(unit))
      : unitLines;
  const otherLines =
    selectedUnits.size > 0 && units.length <= MAX_REQUESTED
      ? unitLines.filter(({ unit }) => !selectedUnits.has(unit))
      : [];
  const steps = Math.max(20, Math.floor(width / 2));
  const shapes: GrowingShapes = { lines: [], bands: [] };
  for (const label of wholeClusters ?? []) addBand(shapes, label, findBand(lines, label));
  if (shownLines.length > MAX_LINES) {
    const labels = [...new Set(shownLines.map(({ unit }) => cluster.get(unit) ?? null))].sort(
      (a, b) => (a ?? 99) - (b ?? 99),
    );
    for (const label of labels) {
      const members = shownLines.filter(({ unit }) => (cluster.get(unit) ?? null) === label);
      addBand(shapes, label, summarize(members, startMs, endMs, steps));
    }
  } else {
    for (const { unit, timesMs, values } of shownLines) {
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
  const median = otherLines.length > 0 ? summarize(otherLines, startMs, endMs, steps) : null;
  const summary = lines.find(({ unit }) => unit === "median");
  if (selectedUnits.size > 0 && (median || summary)) {
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
  const line = pointed === null ? undefined : unitLines.find(({ unit }) => unit === pointed);
  if (line) {
    const { timesMs, values } = line;
    shapes.lines.push({ ...PLAIN, key: "pointed", color: "var(--text)", timesMs, values, width: 1.4, isRead: false });
  }
  return shapes;
}

const PLAIN = { width: 1.1, alpha: 0.9, isDashed: false } as const;
