// The diagnostics page in a link: workload and window, how GPUs are compared and arranged, what is selected and
// brushed. Whether the units exist is known only from the data.

import { qualifyWorkload } from "../base/workload-id.ts";
import { choiceField, type Field } from "./fields.ts";
import type { Screen } from "./screen.ts";
import { decodeUnits, encodeUnits } from "./selection.ts";

export const PLOTS = ["histogram", "timeline", "table"] as const;
export type Plot = (typeof PLOTS)[number];

export const ARRANGEMENTS = ["node", "global_rank", "local_rank", "cluster"] as const;
export type Arrangement = (typeof ARRANGEMENTS)[number];

/** How GPUs are compared; "auto": by what is drawn. */
export const DISTANCES = ["auto", "histogram", "euclidean", "correlation"] as const;
export type Distance = (typeof DISTANCES)[number];

export const LINKAGES = ["average", "complete", "single", "ward", "weighted", "centroid", "median"] as const;
export type Linkage = (typeof LINKAGES)[number];

/** Unix ms, whole seconds. */
export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A rectangle of the scatter, in the metrics' own units. */
export interface Brush {
  readonly xFrom: number;
  readonly xTo: number;
  readonly yFrom: number;
  readonly yTo: number;
}

export type Compared =
  | { readonly kind: "workload"; readonly workload: string }
  | { readonly kind: "window"; readonly window: Window };

export interface DiagnosticsPage {
  /** Null: none chosen yet. */
  readonly workload: string | null;
  /** Null: the server chooses the most informative one. */
  readonly metric: string | null;
  readonly plot: Plot;
  readonly arrangement: Arrangement;
  readonly distance: Distance;
  /** The largest shift between timelines, in steps. */
  readonly lag: number;
  readonly linkage: Linkage;
  /** Number of clusters; null: chosen automatically. */
  readonly count: number | null;
  /** Selected GPUs; none: all. */
  readonly units: readonly string[];
  /** Null: the whole life. */
  readonly window: Window | null;
  /** Metrics of the timeline; empty: the defaults. */
  readonly lines: readonly string[];
  readonly x: string | null;
  readonly y: string | null;
  readonly fit: "robust" | "classic";
  readonly significance: number;
  readonly brush: Brush | null;
  readonly compared: Compared | null;
}

export const SIGNIFICANCES = [0.05, 0.01, 0.001, 0.0001, 0.00001] as const;
const USUAL_SIGNIFICANCE = 0.001;
const MOST_LAG = 60;
const MOST_CLUSTERS = 64;
const MOST_LINES = 8;
const METRIC = /^[a-z0-9_]{1,64}$/;
const WRITTEN = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/;

function nameField(key: string, isFit: (text: string) => boolean): Field<string | null> {
  return {
    key,
    initial: null,
    parse: ([text = ""]) => (isFit(text) ? text : undefined),
    serialize: (name) => (name === null ? [] : [name]),
  };
}

const workloadField: Field<string | null> = {
  ...nameField("workload", (text) => text !== ""),
  parse: ([text = ""]) => (text === "" ? undefined : qualifyWorkload(text)),
};

const metricField = (key: string) => nameField(key, (text) => METRIC.test(text));

function wholeField<T extends number | null>(key: string, initial: T, least: number, most: number): Field<T> {
  return {
    key,
    initial,
    parse([text = ""]) {
      const value = Number(text);
      return /^\d{1,4}$/.test(text) && value >= least && value <= most ? (value as T) : undefined;
    },
    serialize: (value) => (value === initial || value === null ? [] : [String(value)]),
  };
}

function parseWindow(text: string): Window | undefined {
  const [from = "", to = "", ...rest] = text.split("~");
  if (rest.length > 0 || !WRITTEN.test(from) || !WRITTEN.test(to)) return undefined;
  const window = { fromMs: Date.parse(from), toMs: Date.parse(to) };
  return window.fromMs >= 0 && window.toMs > window.fromMs ? window : undefined;
}

function formatWindow({ fromMs, toMs }: Window): string {
  return [fromMs, toMs].map((ms) => `${new Date(ms).toISOString().slice(0, 19)}Z`).join("~");
}

/** Whole seconds, at least ten: shorter windows have no samples to compare. */
export function toWindow(fromMs: number, toMs: number): Window {
  const from = Math.floor(Math.min(fromMs, toMs) / 1000) * 1000;
  return { fromMs: from, toMs: Math.max(from + 10_000, Math.ceil(Math.max(fromMs, toMs) / 1000) * 1000) };
}

const windowField: Field<Window | null> = {
  key: "window",
  initial: null,
  parse: ([text = ""]) => parseWindow(text),
  serialize: (window) => (window ? [formatWindow(window)] : []),
};

const unitsField: Field<readonly string[]> = {
  key: "gpus",
  initial: [],
  parse: ([text = ""]) => decodeUnits(text)?.names,
  serialize: (units) => (units.length > 0 ? [encodeUnits(units)] : []),
};

const linesField: Field<readonly string[]> = {
  key: "lines",
  initial: [],
  parse([text = ""]) {
    const names = [...new Set(text.split(","))];
    return names.length <= MOST_LINES && names.every((name) => METRIC.test(name)) ? names : undefined;
  },
  serialize: (names) => (names.length > 0 ? [names.join(",")] : []),
};

const significanceField: Field<number> = {
  key: "outside",
  initial: USUAL_SIGNIFICANCE,
  parse: ([text = ""]) => SIGNIFICANCES.find((value) => String(value) === text),
  serialize: (value) => (value === USUAL_SIGNIFICANCE ? [] : [String(value)]),
};

const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/;

const brushField: Field<Brush | null> = {
  key: "brush",
  initial: null,
  parse([text = ""]) {
    const parts = text.split("~");
    if (parts.length !== 4 || !parts.every((part) => NUMBER.test(part))) return undefined;
    const [xFrom = 0, xTo = 0, yFrom = 0, yTo = 0] = parts.map(Number);
    return xFrom < xTo && yFrom < yTo ? { xFrom, xTo, yFrom, yTo } : undefined;
  },
  serialize: (brush) => (brush ? [[brush.xFrom, brush.xTo, brush.yFrom, brush.yTo].map(String).join("~")] : []),
};

const comparedField: Field<Compared | null> = {
  key: "compare",
  initial: null,
  parse([text = ""]) {
    const colon = text.indexOf(":");
    const [kind, rest] = [text.slice(0, colon), text.slice(colon + 1)];
    if (kind === "workload" && rest !== "") return { kind, workload: rest };
    const window = kind === "window" ? parseWindow(rest) : undefined;
    return window && { kind: "window", window };
  },
  serialize(compared) {
    if (compared === null) return [];
    return compared.kind === "workload"
      ? [`workload:${compared.workload}`]
      : [`window:${formatWindow(compared.window)}`];
  },
};

const FIELDS = {
  workload: workloadField,
  metric: metricField("metric"),
  plot: choiceField("plot", PLOTS, "histogram"),
  arrangement: choiceField("arrange", ARRANGEMENTS, "node"),
  distance: choiceField("distance", DISTANCES, "auto"),
  lag: wholeField<number>("lag", 0, 0, MOST_LAG),
  linkage: choiceField("linkage", LINKAGES, "average"),
  count: wholeField<number | null>("clusters", null, 1, MOST_CLUSTERS),
  units: unitsField,
  window: windowField,
  lines: linesField,
  x: metricField("x"),
  y: metricField("y"),
  fit: choiceField("fit", ["robust", "classic"], "robust"),
  significance: significanceField,
  brush: brushField,
  compared: comparedField,
} satisfies { readonly [K in keyof DiagnosticsPage]: Field<DiagnosticsPage[K]> };

export const INITIAL_DIAGNOSTICS: DiagnosticsPage = {
  workload: null,
  metric: null,
  plot: "histogram",
  arrangement: "node",
  distance: "auto",
  lag: 0,
  linkage: "average",
  count: null,
  units: [],
  window: null,
  lines: [],
  x: null,
  y: null,
  fit: "robust",
  significance: USUAL_SIGNIFICANCE,
  brush: null,
  compared: null,
};

export function parseDiagnostics(read: <T>(field: Field<T>) => T): DiagnosticsPage {
  return {
    workload: read(FIELDS.workload),
    metric: read(FIELDS.metric),
    plot: read(FIELDS.plot),
    arrangement: read(FIELDS.arrangement),
    distance: read(FIELDS.distance),
    lag: read(FIELDS.lag),
    linkage: read(FIELDS.linkage),
    count: read(FIELDS.count),
    units: read(FIELDS.units),
    window: read(FIELDS.window),
    lines: read(FIELDS.lines),
    x: read(FIELDS.x),
    y: read(FIELDS.y),
    fit: read(FIELDS.fit),
    significance: read(FIELDS.significance),
    brush: read(FIELDS.brush),
    compared: read(FIELDS.compared),
  };
}

export function writeDiagnostics(page: DiagnosticsPage, write: <T>(field: Field<T>, value: T) => void): void {
  write(FIELDS.workload, page.workload);
  write(FIELDS.metric, page.metric);
  write(FIELDS.plot, page.plot);
  write(FIELDS.arrangement, page.arrangement);
  write(FIELDS.distance, page.distance);
  write(FIELDS.lag, page.lag);
  write(FIELDS.linkage, page.linkage);
  write(FIELDS.count, page.count);
  write(FIELDS.units, page.units);
  write(FIELDS.window, page.window);
  write(FIELDS.lines, page.lines);
  write(FIELDS.x, page.x);
  write(FIELDS.y, page.y);
  write(FIELDS.fit, page.fit);
  write(FIELDS.significance, page.significance);
  write(FIELDS.brush, page.brush);
  write(FIELDS.compared, page.compared);
}

export const changeDiagnostics =
  (changes: Partial<DiagnosticsPage>) =>
  (screen: Screen): Screen => ({ ...screen, diagnostics: { ...screen.diagnostics, ...changes } });

/** Opens another workload with default settings; it is also selected in the other views. */
export const diagnose =
  (workload: string | null) =>
  (screen: Screen): Screen => ({
    ...screen,
    view: "diagnostics",
    selection: workload === null ? null : { kind: "workload", key: workload },
    diagnostics: { ...INITIAL_DIAGNOSTICS, workload },
  });

/** Histograms are compared as distributions and timelines point by point, unless the reader chose otherwise. */
export function resolveDistance({ distance, plot }: Pick<DiagnosticsPage, "distance" | "plot">) {
  if (distance !== "auto") return distance;
  return plot === "timeline" ? "euclidean" : "histogram";
}
