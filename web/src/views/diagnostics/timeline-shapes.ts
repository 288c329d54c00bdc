// What is drawn of the selected GPUs' courses: a line each, or a median and a band per cluster; which GPUs to ask for, and which
// time to look at closer. Pure; the rows draw it.

import type { DiagnosisAnswer } from "../../api/generated.ts";
import type { SeriesLine } from "../../api/series.ts";
import type { ChartBand, ChartLine, TimeRange } from "../../charts/line-chart.tsx";
import { clusterColor } from "./cluster-colors.ts";
import { findBand, type Summary, summarize } from "./timelines.ts";

/** More lines than these are a median and a band per cluster. */
export const MOST_LINES = 12;
/** Of so many GPUs the server gives every line; of more, only named ones. */
export const MOST_ASKED = 64;

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

export function drawShapes(
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
