// Requests about the diagnosis of one workload: its GPUs compared, their distributions and timelines, scatter plots of
// two metrics, and events.

import { request, toQuery } from "../base/request.ts";
import { API, getJson } from "./ask.ts";
import { type Columns, decodeColumns, type NameColumn } from "./columns.ts";
import type { DiagnosisAnswer, WorkloadEvent } from "./generated.ts";
import { type SeriesLine, toSeriesLines } from "./series.ts";
import { splitTables } from "./traces-client.ts";

export interface TimeSpan {
  /** Null: the start or end of the workload. */
  readonly startMs: number | null;
  readonly endMs: number | null;
}

/** How GPUs are compared. */
export interface Comparing {
  readonly metric: string | null;
  readonly by: "histogram" | "euclidean" | "correlation";
  readonly maxLag: number;
  readonly linkage: string;
  readonly count: number | null;
}

export interface DiagnosisQuery extends TimeSpan, Comparing {}

/** Counts of one metric's values, by unit, in equal bins over one domain. */
export interface Histograms {
  readonly low: number;
  readonly high: number;
  readonly bins: number;
  readonly counts: ReadonlyMap<string, Float64Array>;
}

export interface LinesQuery extends TimeSpan {
  readonly metrics: readonly string[];
  /** None: all units, or if there are many only their aggregate. `node:*`: all units of a node. */
  readonly units: readonly string[];
  /** Pixels. */
  readonly points: number;
  /** Whether to include the aggregate of all units, and of each cluster that the comparison finds. */
  readonly summary: "none" | "median" | { readonly clustersBy: Comparing };
}

/** Points are judged within the clusters that the comparison supports. */
export interface ScatterQuery extends TimeSpan, Comparing {
  readonly x: string;
  readonly y: string;
  readonly units: readonly string[];
  readonly isRobust: boolean;
  readonly significance: number;
  readonly most: number;
}

export interface Density {
  readonly xLow: number;
  readonly xHigh: number;
  readonly yLow: number;
  readonly yHigh: number;
  readonly columns: number;
  /** Row by row from the lowest y. */
  readonly counts: Float64Array;
}

export interface Scatter {
  readonly unit: NameColumn;
  readonly timesMs: Float64Array;
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly distance: Float64Array;
  readonly isOutlier: Uint8Array;
  readonly density: Density | null;
  readonly note: string | null;
  /** The total, of which this response may hold only some. */
  readonly points: number;
  readonly outliers: number;
}

export interface DiagnosisClient {
  diagnosis(workload: string, query: DiagnosisQuery, signal?: AbortSignal): Promise<DiagnosisAnswer>;
  histograms(workload: string, metric: string, span: TimeSpan, bins: number, signal?: AbortSignal): Promise<Histograms>;
  lines(workload: string, query: LinesQuery, signal?: AbortSignal): Promise<readonly SeriesLine[]>;
  scatter(workload: string, query: ScatterQuery, signal?: AbortSignal): Promise<Scatter>;
  events(workload: string, span: TimeSpan, signal?: AbortSignal): Promise<readonly WorkloadEvent[]>;
}

/** Longer lists are requested in parts: proxies accept URLs of a few thousand characters. */
const MOST_NAMED = 100;

export function createDiagnosisClient(): DiagnosisClient {
  return {
    diagnosis: (workload, query, signal) =>
      getJson<DiagnosisAnswer>(pathOf(workload, "diagnosis", query, toComparing(query)), signal),
    async histograms(workload, metric, span, bins, signal) {
      const { headers, columns } = await getColumns(pathOf(workload, "histograms", span, { metric, bins }), signal);
      return toHistograms(columns, headers.get("X-Domain"));
    },
    async lines(workload, query, signal) {
      const ask = async (units: readonly string[]) => {
        const path = pathOf(workload, "lines", query, {
          metrics: query.metrics.join(","),
          units: units.length > 0 ? units.join(",") : null,
          points: Math.max(2, Math.round(query.points)),
          ...toSummary(query.summary),
        });
        return toSeriesLines((await getColumns(path, signal)).columns);
      };
      if (query.units.length <= MOST_NAMED) return ask(query.units);
      const parts: Promise<readonly SeriesLine[]>[] = [];
      for (let from = 0; from < query.units.length; from += MOST_NAMED) {
        parts.push(ask(query.units.slice(from, from + MOST_NAMED)));
      }
      return (await Promise.all(parts)).flat();
    },
    async scatter(workload, query, signal) {
      const path = pathOf(workload, "scatter", query, {
        x: query.x,
        y: query.y,
        units: query.units.length > 0 ? query.units.join(",") : null,
        robust: String(query.isRobust),
        significance: query.significance,
        ...toComparing(query),
        most: query.most,
      });
      const { headers, bytes } = await getBytes(path, signal);
      const [points, density] = splitTables(bytes, headers.get("X-Tables"));
      return toScatter(points ?? decodeColumns(new Uint8Array(0)), density ?? null, headers);
    },
    events: (workload, span, signal) => getJson<readonly WorkloadEvent[]>(pathOf(workload, "events", span, {}), signal),
  };
}

type Parameters = Readonly<Record<string, string | number | null>>;

function pathOf(workload: string, what: string, { startMs, endMs }: TimeSpan, parameters: Parameters): string {
  return `/workloads/${encodeURIComponent(workload)}/${what}${toQuery({ from: startMs, to: endMs, ...parameters })}`;
}

function toSummary(summary: LinesQuery["summary"]): Parameters {
  if (summary === "none") return {};
  return summary === "median" ? { summary } : { summary: "clusters", ...toComparing(summary.clustersBy) };
}

function toComparing({ metric, by, maxLag, linkage, count }: Comparing): Parameters {
  return { metric, by, max_lag: maxLag || null, linkage, count };
}

async function getBytes(path: string, signal?: AbortSignal) {
  const response = await request(`${API}${path}`, { signal: signal ?? null });
  return { headers: response.headers, bytes: new Uint8Array(await response.arrayBuffer()) };
}

async function getColumns(path: string, signal?: AbortSignal) {
  const { headers, bytes } = await getBytes(path, signal);
  return { headers, columns: decodeColumns(bytes) };
}

export function toHistograms(columns: Columns, domain: string | null): Histograms {
  const [low = 0, high = 1] = (JSON.parse(domain ?? "null") as readonly number[] | null) ?? [];
  const bins: Float64Array[] = [];
  for (let bin = columns.findNumbers("b0"); bin !== null; bin = columns.findNumbers(`b${bins.length}`)) bins.push(bin);
  const units = columns.findNames("unit");
  const counts = new Map<string, Float64Array>();
  for (let row = 0; row < columns.rowCount; row += 1) {
    const unit = units?.names[units.codes[row] ?? 0];
    if (unit)
      counts.set(
        unit,
        Float64Array.from(bins, (bin) => bin[row] ?? 0),
      );
  }
  return { low, high, bins: bins.length, counts };
}

const NO_NUMBERS = new Float64Array(0);

export function toScatter(columns: Columns, density: Columns | null, headers: Headers): Scatter {
  const flags = columns.findNumbers("is_outlier") ?? NO_NUMBERS;
  const counts = JSON.parse(headers.get("X-Counts") ?? "{}") as { points?: number; outliers?: number };
  return {
    unit: columns.findNames("unit") ?? { codes: new Uint32Array(columns.rowCount), names: [null] },
    timesMs: columns.findNumbers("time_ms") ?? NO_NUMBERS,
    x: columns.findNumbers("x") ?? NO_NUMBERS,
    y: columns.findNumbers("y") ?? NO_NUMBERS,
    distance: columns.findNumbers("distance") ?? NO_NUMBERS,
    isOutlier: Uint8Array.from(flags),
    density: toDensity(density?.findNumbers("count") ?? NO_NUMBERS, headers.get("X-Density")),
    note: JSON.parse(headers.get("X-Note") || "null") as string | null,
    points: counts.points ?? columns.rowCount,
    outliers: counts.outliers ?? 0,
  };
}

interface DensityHeader {
  readonly x: readonly [number, number];
  readonly y: readonly [number, number];
  readonly columns: number;
}

function toDensity(counts: Float64Array, text: string | null): Density | null {
  const { x, y, columns } = (JSON.parse(text || "null") as Partial<DensityHeader> | null) ?? {};
  if (!x || !y || !columns || counts.length === 0) return null;
  return { xLow: x[0], xHigh: x[1], yLow: y[0], yHigh: y[1], columns, counts };
}
