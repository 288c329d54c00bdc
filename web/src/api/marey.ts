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

/** One entry per drawn span, which may stand for several; NaN and code 0: not known. */
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
  /** How many it stands for. */
  readonly members: Float64Array;
  readonly minNs: Float64Array;
  readonly medianNs: Float64Array;
  readonly maxNs: Float64Array;
  /** Of all members; they may overlap. */
  readonly totalNs: Float64Array;
  /** The longest member. */
  readonly worstSpan: Float64Array;
  readonly waitNs: Float64Array;
  /** Share of its time on the critical path, 0–1. */
  readonly critical: Float64Array;
  readonly slackNs: Float64Array;
  /** Its id, where it stands for itself. */
  readonly span: Float64Array;
}

export interface MareyBands {
  readonly count: number;
  /** Places in the table of spans. */
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

function toSpans(columns: Columns): MareySpans {
  const { numbers, names } = reader(columns);
  return {
    count: columns.rowCount,
    row: numbers("row"),
    startNs: numbers("start_ns"),
    endNs: numbers("end_ns"),
    class: names("class"),
    phase: names("phase"),
    microBatch: numbers("micro_batch"),
    step: numbers("step"),
    name: names("name"),
    namespace: names("namespace"),
    collective: names("collective"),
    members: numbers("count"),
    minNs: numbers("min_ns"),
    medianNs: numbers("median_ns"),
    maxNs: numbers("max_ns"),
    totalNs: numbers("total_ns"),
    worstSpan: numbers("worst_span"),
    waitNs: numbers("wait_ns"),
    critical: numbers("critical"),
    slackNs: numbers("slack_ns"),
    span: numbers("span"),
  };
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

function toBands(columns: Columns): MareyBands {
  const { numbers, names } = reader(columns);
  return {
    count: columns.rowCount,
    fromSpan: numbers("from_span"),
    toSpan: numbers("to_span"),
    kind: names("kind"),
    fromStartNs: numbers("from_start"),
    fromEndNs: numbers("from_end"),
    toStartNs: numbers("to_start"),
    toEndNs: numbers("to_end"),
    members: numbers("count"),
    maxSkewNs: numbers("max_skew_ns"),
  };
}
