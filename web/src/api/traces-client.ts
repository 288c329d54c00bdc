// Requests about traces of distributed runs: the list of traces, their analysis, spans as a Marey graph, and
// differences between two traces. Traces are uploaded file by file and then imported.

import { Problem } from "../base/problem.ts";
import { PAGE_HEADER, readProblem, request, toQuery } from "../base/request.ts";
import { API, getJson, getTable, send } from "./ask.ts";
import { type Columns, decodeColumns, emptyNames, type NameColumn, nameAt } from "./columns.ts";
import type {
  FlowActivity,
  FlowAnswer,
  SpanAnswer,
  TraceAnswer,
  TraceDiffAnswer,
  TraceList,
  TraceRow,
} from "./generated.ts";
import { type Marey, toMarey } from "./marey.ts";

export interface MareyQuery {
  readonly level: string;
  readonly open: readonly string[];
  readonly fromNs: number;
  readonly toNs: number;
  readonly pixels: number;
  /** Empty: all. */
  readonly classes: readonly string[];
  readonly merge: string;
}

export interface FlowQuery {
  /** Expanded nodes; null: the server's default. */
  readonly open: readonly string[] | null;
  readonly text: string;
  /** The node whose details are requested; null: none. */
  readonly span: number | null;
}

/** Nodes of a flow that run in a window, and the node of a span. */
export interface FlowActivityQuery extends NsRange {
  readonly open: readonly string[];
  readonly span: number | null;
}

/** When chosen nodes of a flow run. */
export interface HighlightQuery extends NsRange {
  /** Null: the server's default. */
  readonly open: readonly string[] | null;
  readonly nodes: readonly number[];
  readonly pixels: number;
}

/** One entry per stretch of time in which something highlighted runs on a lane. */
export interface TraceHighlights {
  readonly count: number;
  readonly rank: Float64Array;
  readonly lane: NameColumn;
  readonly class: NameColumn;
  readonly phase: NameColumn;
  readonly startNs: Float64Array;
  readonly endNs: Float64Array;
}

/** The whole trace in bins: one entry per row and bin. */
export interface TraceOverview {
  readonly rows: readonly string[];
  readonly bins: number;
  /** By row, then by bin: shares, 0–1. */
  readonly compute: Float64Array;
  readonly communication: Float64Array;
}

export interface NsRange {
  /** Null: the start or end of the trace. */
  readonly fromNs: number | null;
  readonly toNs: number | null;
}

/** One entry per step and rank. */
export interface TraceSteps {
  readonly count: number;
  readonly step: Float64Array;
  readonly rank: Float64Array;
  readonly startNs: Float64Array;
  readonly durationNs: Float64Array;
  readonly computeNs: Float64Array;
  readonly waitNs: Float64Array;
  readonly transferNs: Float64Array;
  readonly idleNs: Float64Array;
  /** The step without long idle time around its activity. */
  readonly activeStartNs: Float64Array;
  readonly activeEndNs: Float64Array;
}

export interface TraceOperators {
  readonly count: number;
  readonly name: NameColumn;
  readonly class: NameColumn;
  readonly phase: NameColumn;
  readonly calls: Float64Array;
  readonly totalNs: Float64Array;
  readonly meanNs: Float64Array;
  readonly maxNs: Float64Array;
  readonly share: Float64Array;
  readonly ranks: Float64Array;
  readonly worstRank: Float64Array;
  readonly imbalance: Float64Array;
  readonly flops: Float64Array;
}

/** One entry per pair of ranks, or per rank and process group, and kind. */
export interface TraceCommunication {
  readonly count: number;
  readonly fromRank: Float64Array;
  /** NaN: the whole group. */
  readonly toRank: Float64Array;
  readonly kind: NameColumn;
  readonly processGroup: NameColumn;
  readonly calls: Float64Array;
  readonly bytes: Float64Array;
  readonly timeNs: Float64Array;
  readonly waitNs: Float64Array;
}

/** One entry per rank and time; null: not in the trace. */
export interface TraceCurves {
  readonly rank: Float64Array;
  readonly timesNs: Float64Array;
  readonly compute: Float64Array | null;
  readonly communication: Float64Array | null;
  readonly flops: Float64Array | null;
  readonly memory: Float64Array | null;
}

export interface TracesClient {
  /** Null: all workloads. */
  list(workload: string | null, signal?: AbortSignal): Promise<TraceList>;
  create(name: string, workload: string | null): Promise<TraceRow>;
  /** `path`: within the trace's folder. */
  putFile(trace: string, path: string, file: Blob, onSent?: (bytes: number) => void): Promise<void>;
  startImport(trace: string): Promise<TraceRow>;
  remove(trace: string): Promise<void>;
  trace(trace: string, signal?: AbortSignal): Promise<TraceAnswer>;
  steps(trace: string, signal?: AbortSignal): Promise<TraceSteps>;
  marey(trace: string, query: MareyQuery, signal?: AbortSignal): Promise<Marey>;
  span(trace: string, span: number, signal?: AbortSignal): Promise<SpanAnswer>;
  operators(trace: string, range: NsRange, signal?: AbortSignal): Promise<TraceOperators>;
  /** Over the whole trace. */
  communication(trace: string, signal?: AbortSignal): Promise<TraceCommunication>;
  curves(trace: string, range: NsRange, pixels: number, signal?: AbortSignal): Promise<TraceCurves>;
  flow(trace: string, query: FlowQuery, signal?: AbortSignal): Promise<FlowAnswer>;
  flowActivity(trace: string, query: FlowActivityQuery, signal?: AbortSignal): Promise<FlowActivity>;
  highlights(trace: string, query: HighlightQuery, signal?: AbortSignal): Promise<TraceHighlights>;
  overview(trace: string, pixels: number, signal?: AbortSignal): Promise<TraceOverview>;
  diff(before: string, after: string, signal?: AbortSignal): Promise<TraceDiffAnswer>;
}

export function createTracesClient(): TracesClient {
  return {
    list: (workload, signal) => getJson<TraceList>(`/traces${toQuery({ workload })}`, signal),
    create: async (name, workload) =>
      (await (await send("POST", "/traces", { name, workload_id: workload })).json()) as TraceRow,
    putFile: (trace, path, file, onSent) =>
      putBody(`${API}${pathOf(trace, `/files/${path.split("/").map(encodeURIComponent).join("/")}`)}`, file, onSent),
    startImport: async (trace) => (await (await send("POST", pathOf(trace, "/import"))).json()) as TraceRow,
    async remove(trace) {
      await send("DELETE", pathOf(trace));
    },
    trace: (trace, signal) => getJson<TraceAnswer>(pathOf(trace), signal),
    span: (trace, span, signal) => getJson<SpanAnswer>(pathOf(trace, `/spans/${span}`), signal),
    // An empty list must be sent: without the parameter the server chooses.
    flow: (trace, { open, text, span }, signal) =>
      getJson<FlowAnswer>(
        pathOf(
          trace,
          `/flow${toQuery({ open: open === null ? null : open.join(",") || ",", text: text || null, span })}`,
        ),
        signal,
      ),
    flowActivity: (trace, { open, fromNs, toNs, span }, signal) =>
      getJson<FlowActivity>(
        pathOf(trace, `/flow/activity${toQuery({ open: open.join(",") || ",", from_ns: fromNs, to_ns: toNs, span })}`),
        signal,
      ),
    highlights: async (trace, { open, nodes, fromNs, toNs, pixels }, signal) => {
      const opened = open === null ? null : open.join(",") || ",";
      const query = { open: opened, nodes: nodes.join(","), from_ns: fromNs, to_ns: toNs, pixels };
      return toHighlights(await getTable(pathOf(trace, `/highlights${toQuery(query)}`), signal));
    },
    overview: async (trace, pixels, signal) =>
      toOverview(await getTable(pathOf(trace, `/overview${toQuery({ pixels })}`), signal)),
    diff: (a, b, signal) => getJson<TraceDiffAnswer>(`/traces/diff${toQuery({ a, b })}`, signal),
    steps: async (trace, signal) => toSteps(await getTable(pathOf(trace, "/steps"), signal)),
    async marey(trace, query, signal) {
      const [spans, rows, bands] = await getTables(`${pathOf(trace, "/marey")}${mareyQuery(query)}`, signal);
      return toMarey(spans ?? NO_COLUMNS, rows ?? NO_COLUMNS, bands ?? NO_COLUMNS);
    },
    operators: async (trace, range, signal) =>
      toOperators(await getTable(`${pathOf(trace, "/operators")}${rangeQuery(range)}`, signal)),
    communication: async (trace, signal) => toCommunication(await getTable(pathOf(trace, "/communication"), signal)),
    curves: async (trace, { fromNs, toNs }, pixels, signal) =>
      toCurves(
        await getTable(`${pathOf(trace, "/curves")}${toQuery({ from_ns: fromNs, to_ns: toNs, pixels })}`, signal),
      ),
  };
}

/** Like `fetch`, with upload progress: large traces take minutes. */
function putBody(address: string, body: Blob, onSent?: (bytes: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const sender = new XMLHttpRequest();
    sender.open("PUT", address);
    sender.setRequestHeader(PAGE_HEADER, "1");
    sender.upload.onprogress = ({ loaded }) => onSent?.(loaded);
    sender.onerror = () =>
      reject(
        new Problem("The server is not responding.", { code: "unreachable", hint: "The server rejected the file." }),
      );
    sender.onload = () => {
      if (sender.status < 400) resolve();
      else void readProblem(new Response(sender.responseText, { status: sender.status })).then(reject);
    };
    sender.send(body);
  });
}

function pathOf(trace: string, rest = ""): string {
  return `/traces/${encodeURIComponent(trace)}${rest}`;
}

function rangeQuery({ fromNs, toNs }: NsRange): string {
  return toQuery({ from_ns: fromNs, to_ns: toNs });
}

function mareyQuery({ level, open, fromNs, toNs, pixels, classes, merge }: MareyQuery): string {
  return toQuery({
    level,
    open: open.join(",") || null,
    from_ns: fromNs,
    to_ns: toNs,
    pixels,
    classes: classes.join(",") || null,
    merge,
  });
}

const NO_COLUMNS: Columns = { rowCount: 0, findNames: () => null, findNumbers: () => null };

/** Several tables in one body; a header gives the length of each. */
async function getTables(path: string, signal?: AbortSignal): Promise<readonly Columns[]> {
  const response = await request(`${API}${path}`, { signal: signal ?? null });
  return splitTables(new Uint8Array(await response.arrayBuffer()), response.headers.get("X-Tables"));
}

export function splitTables(bytes: Uint8Array, lengths: string | null): readonly Columns[] {
  let start = 0;
  return (lengths ?? String(bytes.length)).split(",").map((text) => {
    const end = start + Number(text);
    // Arrow needs aligned buffers, which a slice of a larger body may not be.
    const part = bytes.slice(start, end);
    start = end;
    return decodeColumns(part);
  });
}

export function toSteps(columns: Columns): TraceSteps {
  const numbers = numbersOf(columns);
  return {
    count: columns.rowCount,
    step: numbers("step"),
    rank: numbers("rank"),
    startNs: numbers("start_ns"),
    durationNs: numbers("duration_ns"),
    computeNs: numbers("compute_ns"),
    waitNs: numbers("exposed_wait_ns"),
    transferNs: numbers("exposed_transfer_ns"),
    idleNs: numbers("idle_ns"),
    activeStartNs: numbers("active_start_ns"),
    activeEndNs: numbers("active_end_ns"),
  };
}

function toHighlights(columns: Columns): TraceHighlights {
  const [numbers, names] = [numbersOf(columns), namesOf(columns)];
  return {
    count: columns.rowCount,
    rank: numbers("rank"),
    lane: names("lane"),
    class: names("class"),
    phase: names("phase"),
    startNs: numbers("start_ns"),
    endNs: numbers("end_ns"),
  };
}

export function toOverview(columns: Columns): TraceOverview {
  const numbers = numbersOf(columns);
  const [row, label] = [numbers("row"), namesOf(columns)("label")];
  const bins = row.findIndex((value) => value !== row[0]);
  const size = bins < 0 ? columns.rowCount : bins;
  const count = size === 0 ? 0 : columns.rowCount / size;
  return {
    rows: Array.from({ length: count }, (_, at) => nameAt(label, at * size) ?? ""),
    bins: size,
    compute: numbers("compute"),
    communication: numbers("communication"),
  };
}

function toOperators(columns: Columns): TraceOperators {
  const [numbers, names] = [numbersOf(columns), namesOf(columns)];
  return {
    count: columns.rowCount,
    name: names("name"),
    class: names("class"),
    phase: names("phase"),
    calls: numbers("count"),
    totalNs: numbers("total_ns"),
    meanNs: numbers("mean_ns"),
    maxNs: numbers("max_ns"),
    share: numbers("share"),
    ranks: numbers("ranks"),
    worstRank: numbers("worst_rank"),
    imbalance: numbers("imbalance"),
    flops: numbers("flops"),
  };
}

function toCommunication(columns: Columns): TraceCommunication {
  const [numbers, names] = [numbersOf(columns), namesOf(columns)];
  return {
    count: columns.rowCount,
    fromRank: numbers("from_rank"),
    toRank: numbers("to_rank"),
    kind: names("kind"),
    processGroup: names("process_group"),
    calls: numbers("count"),
    bytes: numbers("bytes"),
    timeNs: numbers("time_ns"),
    waitNs: numbers("wait_ns"),
  };
}

function toCurves(columns: Columns): TraceCurves {
  const readIfMeasured = (name: string) => {
    const values = columns.findNumbers(name);
    return values?.some((value) => !Number.isNaN(value)) ? values : null;
  };
  return {
    rank: numbersOf(columns)("rank"),
    timesNs: numbersOf(columns)("time_ns"),
    compute: readIfMeasured("compute"),
    communication: readIfMeasured("communication"),
    flops: readIfMeasured("flops"),
    memory: readIfMeasured("memory_bytes"),
  };
}

function numbersOf(columns: Columns): (name: string) => Float64Array {
  return (name) => columns.findNumbers(name) ?? new Float64Array(columns.rowCount).fill(Number.NaN);
}

function namesOf(columns: Columns): (name: string) => NameColumn {
  return (name) => columns.findNames(name) ?? emptyNames(columns.rowCount);
}
