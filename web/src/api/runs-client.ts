// Requests about tracked runs: the tree of runs, one run, metrics as lines and as bands over repeats, and saved
// comparisons.

import { toQuery } from "../base/request.ts";
import { getJson, getTable, send } from "./ask.ts";
import { type Columns, emptyNames, nameAt } from "./columns.ts";
import type {
  HangAnswer,
  HangList,
  RunAnswer,
  RunMetrics,
  RunTree,
  SavedView,
  SavedViews,
  ViewDocument,
} from "./generated.ts";

export interface RunLinesQuery {
  readonly runs: readonly string[];
  readonly metrics: readonly string[];
  readonly axis: string;
  /** Null: second 0 is the start of each run. */
  readonly phase: string | null;
  readonly points: number;
  /** In units of the axis; null: unbounded. */
  readonly start: number | null;
  readonly end: number | null;
}

/** One line: a metric of a run, or of one of its GPUs or ranks. */
export interface RunLine {
  readonly run: string;
  readonly metric: string;
  /** Null: the run as a whole. */
  readonly place: string | null;
  readonly scope: string | null;
  readonly x: Float64Array;
  readonly values: Float64Array;
}

export interface RunBandsQuery extends Omit<RunLinesQuery, "runs"> {
  readonly groups: readonly (readonly string[])[];
  readonly band: string;
}

/** The mean of a group's runs with its band. */
export interface RunBandLine {
  /** Its index in the requested groups. */
  readonly group: number;
  readonly metric: string;
  readonly x: Float64Array;
  readonly mean: Float64Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
}

export interface RunsClient {
  tree(signal?: AbortSignal): Promise<RunTree>;
  run(run: string, signal?: AbortSignal): Promise<RunAnswer>;
  hang(run: string, signal?: AbortSignal): Promise<HangAnswer>;
  /** `workload`: a run or the Slurm job that runs belong to; null: all. */
  hangs(workload: string | null, signal?: AbortSignal): Promise<HangList>;
  removeRun(run: string): Promise<void>;
  metrics(runs: readonly string[], signal?: AbortSignal): Promise<RunMetrics>;
  lines(query: RunLinesQuery, signal?: AbortSignal): Promise<readonly RunLine[]>;
  bands(query: RunBandsQuery, signal?: AbortSignal): Promise<readonly RunBandLine[]>;
  insights(signal?: AbortSignal): Promise<SavedViews>;
  saveInsight(name: string, document: ViewDocument): Promise<SavedView>;
  removeInsight(name: string): Promise<void>;
}

export function createRunsClient(): RunsClient {
  return {
    tree: (signal) => getJson<RunTree>("/runs/tree", signal),
    run: (run, signal) => getJson<RunAnswer>(`/runs/${encodeURIComponent(run)}`, signal),
    hang: (run, signal) => getJson<HangAnswer>(`/runs/${encodeURIComponent(run)}/hang`, signal),
    hangs: (workload, signal) => getJson<HangList>(`/hangs${toQuery(workload === null ? {} : { workload })}`, signal),
    async removeRun(run) {
      await send("DELETE", `/runs/${encodeURIComponent(run)}`);
    },
    metrics: (runs, signal) => getJson<RunMetrics>(`/runs/metrics${toQuery({ run: runs })}`, signal),
    lines: async ({ runs, metrics, ...rest }, signal) =>
      toRunLines(await getTable(`/runs/series${toQuery({ run: runs, metric: metrics, ...rest })}`, signal)),
    bands: async ({ groups, metrics, ...rest }, signal) => {
      const group = groups.map((runs) => runs.join(","));
      return toBandLines(await getTable(`/runs/bands${toQuery({ group, metric: metrics, ...rest })}`, signal));
    },
    insights: (signal) => getJson<SavedViews>("/insights", signal),
    saveInsight: async (name, document) =>
      (await (await send("PUT", `/insights/${encodeURIComponent(name)}`, document)).json()) as SavedView,
    async removeInsight(name) {
      await send("DELETE", `/insights/${encodeURIComponent(name)}`);
    },
  };
}

const NO_NUMBERS = new Float64Array();

/** Lines follow one another: a new one starts where any of its names changes. */
export function toRunLines(columns: Columns): readonly RunLine[] {
  const names = (column: string) => columns.findNames(column) ?? emptyNames(columns.rowCount);
  const [run, metric, place, scope] = [names("run"), names("metric"), names("place"), names("scope")];
  const x = columns.findNumbers("x") ?? NO_NUMBERS;
  const values = columns.findNumbers("value") ?? NO_NUMBERS;
  const keys = [run.codes, metric.codes, place.codes, scope.codes];
  return splitRows(columns.rowCount, keys).map(([from, to]) => ({
    run: nameAt(run, from) ?? "",
    metric: nameAt(metric, from) ?? "",
    place: nameAt(place, from),
    scope: nameAt(scope, from),
    x: x.subarray(from, to),
    values: values.subarray(from, to),
  }));
}

export function toBandLines(columns: Columns): readonly RunBandLine[] {
  const metric = columns.findNames("metric") ?? emptyNames(columns.rowCount);
  const numbers = (column: string) => columns.findNumbers(column) ?? NO_NUMBERS;
  const [group, x, mean, low, high] = ["group", "x", "mean", "low", "high"].map(numbers) as [
    Float64Array,
    Float64Array,
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  return splitRows(columns.rowCount, [group, metric.codes]).map(([from, to]) => ({
    group: group[from] ?? 0,
    metric: nameAt(metric, from) ?? "",
    x: x.subarray(from, to),
    mean: mean.subarray(from, to),
    low: low.subarray(from, to),
    high: high.subarray(from, to),
  }));
}

/** Ranges [from, to) of rows that are equal in all keys. */
function splitRows(count: number, keys: readonly ArrayLike<number>[]): readonly (readonly [number, number])[] {
  const parts: (readonly [number, number])[] = [];
  let from = 0;
  for (let row = 1; row <= count; row += 1) {
    if (row < count && keys.every((key) => key[row] === key[row - 1])) continue;
    parts.push([from, row]);
    from = row;
  }
  return parts;
}
