// A Marey graph as columns: spans on rows, and the bands that join the same operator on neighboring rows. Times are
// nanoseconds since the trace's origin.

import { type Columns, emptyNames, type NameColumn, nameAt, numberAt } from "./columns.ts";

export interface MareyRow {
  readonly row: number;
  readonly label: string;
  readonly stage: number | null;
  readonly rank: number | null;
  readonly lane: string | null;
  readonly isDevice: boolean;
  /** 0: a stage; 1: a rank; 2: a lane. */
  readonly depth: number;
  readonly canOpen: boolean;
  readonly isOpen: boolean;
}

/** One entry per drawn span, which may represent several; NaN and code 0: unknown. */
export interface MareySpans {
  readonly count: number;
  readonly row: Float64Array;
  readonly startNs: Float64Array;
  readonly endNs: Float64Array;
  readonly class: NameColumn;
  readonly phase: NameColumn;
  readonly microBatch: Float64Array;
  readonly step: Float64Array;
  readonly name: NameColumn;
  readonly namespace: NameColumn;
  readonly collective: NameColumn;
  /** The number of spans that it represents. */
  readonly members: Float64Array;
  readonly minNs: Float64Array;
  readonly medianNs: Float64Array;
  readonly maxNs: Float64Array;
  /** Summed over all members, which may overlap. */
  readonly totalNs: Float64Array;
  /** The longest member. */
  readonly worstSpan: Float64Array;
  readonly waitNs: Float64Array;
  /** Share of its time on the critical path, 0–1. */
  readonly critical: Float64Array;
  readonly slackNs: Float64Array;
  /** Its id, if it represents a single span. */
  readonly span: Float64Array;
}

export interface MareyBands {
  readonly count: number;
  /** Indices into the table of spans. */
  readonly fromSpan: Float64Array;
  readonly toSpan: Float64Array;
  readonly kind: NameColumn;
  readonly fromStartNs: Float64Array;
  readonly fromEndNs: Float64Array;
  readonly toStartNs: Float64Array;
  readonly toEndNs: Float64Array;
  readonly members: Float64Array;
  readonly maxSkewNs: Float64Array;
}

export interface Marey {
  readonly spans: MareySpans;
  readonly rows: readonly MareyRow[];
  readonly bands: MareyBands;
}

export function toMarey(spans: Columns, rows: Columns, bands: Columns): Marey {
  return { spans: toSpans(spans), rows: toRows(rows), bands: toBands(bands) };
}

function reader(columns: Columns) {
  return {
    numbers: (name: string) => columns.findNumbers(name) ?? new Float64Array(columns.rowCount).fill(Number.NaN),
    names: (name: string) => columns.findNames(name) ?? emptyNames(columns.rowCount),
  };
}

const SPAN_NUMBERS = {
  row: "row",
  startNs: "start_ns",
  endNs: "end_ns",
  microBatch: "micro_batch",
  step: "step",
  members: "count",
  minNs: "min_ns",
  medianNs: "median_ns",
  maxNs: "max_ns",
  totalNs: "total_ns",
  worstSpan: "worst_span",
  waitNs: "wait_ns",
  critical: "critical",
  slackNs: "slack_ns",
  span: "span",
} as const;

const SPAN_NAMES = {
  class: "class",
  phase: "phase",
  name: "name",
  namespace: "namespace",
  collective: "collective",
} as const;

/** Columns are decoded on first use: drawing needs half of them, tooltips and search the rest. */
function toSpans(columns: Columns): MareySpans {
  const { numbers, names } = reader(columns);
  const spans = { count: columns.rowCount };
  for (const [key, column] of Object.entries(SPAN_NUMBERS)) defineOnce(spans, key, () => numbers(column));
  for (const [key, column] of Object.entries(SPAN_NAMES)) defineOnce(spans, key, () => names(column));
  return spans as MareySpans;
}

/** A property that is computed on first read. */
function defineOnce(target: object, key: string, make: () => unknown): void {
  Object.defineProperty(target, key, {
    configurable: true,
    enumerable: true,
    get() {
      const value = make();
      Object.defineProperty(target, key, { value, enumerable: true });
      return value;
    },
  });
}

function toRows(columns: Columns): readonly MareyRow[] {
  const { numbers, names } = reader(columns);
  const [row, stage, rank, depth] = [numbers("row"), numbers("stage"), numbers("rank"), numbers("depth")];
  const [isDevice, canOpen, isOpen] = [numbers("is_device"), numbers("can_open"), numbers("is_open")];
  const label = names("label");
  const lane = names("lane");
  return Array.from({ length: columns.rowCount }, (_, at) => ({
    row: row[at] ?? at,
    label: nameAt(label, at) ?? "",
    stage: numberAt(stage, at),
    rank: numberAt(rank, at),
    lane: nameAt(lane, at),
    isDevice: isDevice[at] === 1,
    depth: numberAt(depth, at) ?? 0,
    canOpen: canOpen[at] === 1,
    isOpen: isOpen[at] === 1,
  }));
}

const BAND_NUMBERS = {
  fromSpan: "from_span",
  toSpan: "to_span",
  fromStartNs: "from_start",
  fromEndNs: "from_end",
  toStartNs: "to_start",
  toEndNs: "to_end",
  members: "count",
  maxSkewNs: "max_skew_ns",
} as const;

function toBands(columns: Columns): MareyBands {
  const { numbers, names } = reader(columns);
  const bands = { count: columns.rowCount };
  for (const [key, column] of Object.entries(BAND_NUMBERS)) defineOnce(bands, key, () => numbers(column));
  defineOnce(bands, "kind", () => names("kind"));
  return bands as MareyBands;
}
