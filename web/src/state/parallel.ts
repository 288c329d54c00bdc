// The parallel page in a link: trace and time range, expanded rows, merging and colors of spans, selection, search and
// comparison. What a trace contains is known only from the data.

import { choiceField, type Field, textField } from "./fields.ts";
import type { Screen } from "./screen.ts";

export const LEVELS = ["stage", "rank", "lane"] as const;
export type Level = (typeof LEVELS)[number];

export const SPAN_COLORS = ["class", "wait", "critical", "slack"] as const;
export type SpanColor = (typeof SPAN_COLORS)[number];

export const MERGES = ["gap", "namespace", "none"] as const;
export type Merge = (typeof MERGES)[number];

/** The panes next to the drawing. */
export const PANES = ["none", "span", "operators", "communication", "ranks"] as const;
export type Pane = (typeof PANES)[number];

/** Graph and flow, each with its table, and both side by side. */
export const DRAWINGS = ["graph", "flow", "both", "table", "flow_table"] as const;
export type Drawing = (typeof DRAWINGS)[number];

/** Only the flow, without the graph. */
export function isFlow(drawing: Drawing): boolean {
  return drawing === "flow" || drawing === "flow_table";
}

export function showsGraph(drawing: Drawing): boolean {
  return drawing === "graph" || drawing === "both";
}

/** Small curves in the lanes. */
export const CURVES = ["compute", "communication", "flops", "memory"] as const;
export type CurveName = (typeof CURVES)[number];

export const SPAN_CLASSES = ["phase", "compute", "communication", "memory", "launch", "host", "annotation"] as const;
export type SpanClass = (typeof SPAN_CLASSES)[number];
/** What devices do, what ranks send, and the phases they announce. */
const USUAL_CLASSES: readonly SpanClass[] = ["phase", "compute", "communication", "memory"];

/** Nanoseconds since the trace's origin. */
export interface NsWindow {
  readonly fromNs: number;
  readonly toNs: number;
}

export interface ParallelPage {
  /** Null: none chosen yet. */
  readonly trace: string | null;
  /** Null: the trace's typical step. */
  readonly window: NsWindow | null;
  readonly level: Level;
  /** Rows opened one level further: a stage's number, or a rank as `r3`. */
  readonly open: readonly string[];
  readonly color: SpanColor;
  /** Which spans are drawn. */
  readonly classes: readonly SpanClass[];
  readonly merge: Merge;
  /** Drawn below each lane; null: none. */
  readonly curve: CurveName | null;
  /** The selected span's id. */
  readonly span: number | null;
  readonly text: string;
  readonly drawing: Drawing;
  readonly pane: Pane;
  /** Expanded nodes of the execution flow, as the server names them; null: the default. */
  readonly flow: readonly string[] | null;
  /** The chosen nodes of the flow, whose spans are highlighted in the graph; numbers among the nodes that `flow` expands. */
  readonly nodes: readonly number[];
  /** The verdict whose spans are highlighted, by its place in the report; null: none. */
  readonly verdict: number | null;
  /** A second trace, drawn below on the same scale; null: none. */
  readonly compared: string | null;
}

const TRACE = /^[\w.-]{1,120}$/;
const NUMBER = /^-?\d{1,16}(\.\d+)?$/;
const ROW = /^r?\d{1,6}$/;
const MOST_OPEN = 200;
const MOST_NODES = 100;

function traceField(key: string): Field<string | null> {
  return {
    key,
    initial: null,
    parse: ([text = ""]) => (TRACE.test(text) ? text : undefined),
    serialize: (trace) => (trace === null ? [] : [trace]),
  };
}

const windowField: Field<NsWindow | null> = {
  key: "ns",
  initial: null,
  parse([text = ""]) {
    const [from = "", to = "", ...rest] = text.split("~");
    if (rest.length > 0 || !NUMBER.test(from) || !NUMBER.test(to)) return undefined;
    return Number(to) > Number(from) ? { fromNs: Number(from), toNs: Number(to) } : undefined;
  },
  serialize: (window) => (window ? [`${Math.round(window.fromNs)}~${Math.round(window.toNs)}`] : []),
};

const openField: Field<readonly string[]> = {
  key: "open",
  initial: [],
  parse([text = ""]) {
    const rows = [...new Set(text.split(","))];
    return rows.length <= MOST_OPEN && rows.every((row) => ROW.test(row)) ? rows : undefined;
  },
  serialize: (rows) => (rows.length > 0 ? [rows.join(",")] : []),
};

const flowField: Field<readonly string[] | null> = {
  key: "flow",
  initial: null,
  parse([text = ""]) {
    const parts = text.split(".").filter(Boolean);
    return parts.every((part) => /^\*?-?\d{1,6}$/.test(part)) ? parts : undefined;
  },
  serialize: (parts) => (parts === null ? [] : [parts.join(".") || "."]),
};

const nodesField: Field<readonly number[]> = {
  key: "nodes",
  initial: [],
  parse([text = ""]) {
    const parts = text.split(".");
    const isList = parts.length <= MOST_NODES && parts.every((part) => /^\d{1,5}$/.test(part));
    return isList ? [...new Set(parts.map(Number))] : undefined;
  },
  serialize: (nodes) => (nodes.length > 0 ? [nodes.join(".")] : []),
};

const verdictField: Field<number | null> = {
  key: "verdict",
  initial: null,
  parse: ([text = ""]) => (/^\d{1,4}$/.test(text) ? Number(text) : undefined),
  serialize: (verdict) => (verdict === null ? [] : [String(verdict)]),
};

const classesField: Field<readonly SpanClass[]> = {
  key: "show",
  initial: USUAL_CLASSES,
  parse([text = ""]) {
    const names = text.split(",");
    const classes = SPAN_CLASSES.filter((spanClass) => names.includes(spanClass));
    return classes.length === names.length ? classes : undefined;
  },
  serialize: (classes) => (classes.join() === USUAL_CLASSES.join() ? [] : [classes.join(",")]),
};

const spanField: Field<number | null> = {
  key: "at_span",
  initial: null,
  parse: ([text = ""]) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined),
  serialize: (span) => (span === null ? [] : [String(span)]),
};

const curveField: Field<CurveName | null> = {
  key: "curve",
  initial: null,
  parse: ([text]) => CURVES.find((curve) => curve === text),
  serialize: (curve) => (curve === null ? [] : [curve]),
};

const FIELDS = {
  trace: traceField("trace"),
  window: windowField,
  level: choiceField<Level>("level", LEVELS, "stage"),
  open: openField,
  color: choiceField<SpanColor>("paint", SPAN_COLORS, "class"),
  classes: classesField,
  merge: choiceField<Merge>("merge", MERGES, "gap"),
  curve: curveField,
  span: spanField,
  text: textField("operator"),
  drawing: choiceField<Drawing>("drawn", DRAWINGS, "graph"),
  pane: choiceField<Pane>("pane", PANES, "none"),
  flow: flowField,
  nodes: nodesField,
  verdict: verdictField,
  compared: traceField("against"),
} satisfies { readonly [K in keyof ParallelPage]: Field<ParallelPage[K]> };

export const INITIAL_PARALLEL: ParallelPage = {
  trace: null,
  window: null,
  level: "stage",
  open: [],
  color: "class",
  classes: USUAL_CLASSES,
  merge: "gap",
  curve: null,
  span: null,
  text: "",
  drawing: "graph",
  pane: "none",
  flow: null,
  nodes: [],
  verdict: null,
  compared: null,
};

export function parseParallel(read: <T>(field: Field<T>) => T): ParallelPage {
  return {
    trace: read(FIELDS.trace),
    window: read(FIELDS.window),
    level: read(FIELDS.level),
    open: read(FIELDS.open),
    color: read(FIELDS.color),
    classes: read(FIELDS.classes),
    merge: read(FIELDS.merge),
    curve: read(FIELDS.curve),
    span: read(FIELDS.span),
    text: read(FIELDS.text),
    drawing: read(FIELDS.drawing),
    pane: read(FIELDS.pane),
    flow: read(FIELDS.flow),
    nodes: read(FIELDS.nodes),
    verdict: read(FIELDS.verdict),
    compared: read(FIELDS.compared),
  };
}

export function writeParallel(page: ParallelPage, write: <T>(field: Field<T>, value: T) => void): void {
  write(FIELDS.trace, page.trace);
  write(FIELDS.window, page.window);
  write(FIELDS.level, page.level);
  write(FIELDS.open, page.open);
  write(FIELDS.color, page.color);
  write(FIELDS.classes, page.classes);
  write(FIELDS.merge, page.merge);
  write(FIELDS.curve, page.curve);
  write(FIELDS.span, page.span);
  write(FIELDS.text, page.text);
  write(FIELDS.drawing, page.drawing);
  write(FIELDS.pane, page.pane);
  write(FIELDS.flow, page.flow);
  write(FIELDS.nodes, page.nodes);
  write(FIELDS.verdict, page.verdict);
  write(FIELDS.compared, page.compared);
}

export const changeParallel =
  (changes: Partial<ParallelPage>) =>
  (screen: Screen): Screen => ({ ...screen, parallel: { ...screen.parallel, ...changes } });

/** Opens another trace; how it is drawn stays. */
export const openTrace =
  (trace: string | null) =>
  (screen: Screen): Screen => ({
    ...screen,
    view: "parallel",
    parallel: {
      ...INITIAL_PARALLEL,
      trace,
      color: screen.parallel.color,
      classes: screen.parallel.classes,
      merge: screen.parallel.merge,
    },
  });

/** Expands a row by one level, or collapses it. */
export const toggleRow =
  (row: string) =>
  (screen: Screen): Screen => {
    const { open } = screen.parallel;
    const isOpen = open.includes(row);
    return changeParallel({ open: isOpen ? open.filter((other) => other !== row) : [...open, row].slice(-MOST_OPEN) })(
      screen,
    );
  };
