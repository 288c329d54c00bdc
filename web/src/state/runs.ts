// The runs page in a link: which runs, which chart, over which axis. Which metrics a run has is known only from the
// data.

import { choiceField, type Field, textField } from "./fields.ts";
import type { Screen } from "./screen.ts";

export const RUN_DRAWINGS = ["lines", "bars", "scatter", "parallel", "table", "hang"] as const;
export type RunDrawing = (typeof RUN_DRAWINGS)[number];

/** What lines are drawn over. */
export const RUN_AXES = ["time", "step", "epoch"] as const;
export type RunAxis = (typeof RUN_AXES)[number];

/** What is one line, bar or point: each run, or repeats taken together. */
export const RUN_GROUPINGS = ["run", "repeats", "workload", "experiment"] as const;
export type RunGrouping = (typeof RUN_GROUPINGS)[number];

/** What the band around the mean of a group shows. */
export const RUN_BANDS = ["range", "interval", "deviation"] as const;
export type RunBand = (typeof RUN_BANDS)[number];

export interface RunsPage {
  /** The compared runs, in the order in which they were chosen; null: no choice yet. */
  readonly runs: readonly string[] | null;
  /** The run whose details are open; null: none. */
  readonly open: string | null;
  readonly text: string;
  readonly drawing: RunDrawing;
  /** One chart each; empty: the most informative ones. */
  readonly metrics: readonly string[];
  readonly axis: RunAxis;
  /** Second 0 is the begin of this phase; empty: the start of the run. */
  readonly phase: string;
  readonly grouping: RunGrouping;
  readonly band: RunBand;
  /** Weight of past values in the exponential moving average, 0–0.99. */
  readonly smoothing: number;
  /** How much of the beginning is left out, in units of the axis. */
  readonly warmUp: number;
  /** Values beyond this percentile on either side are left out; 0: none. */
  readonly outliers: number;
  /** Quantities of the scatter axes; empty: the most informative ones. */
  readonly x: string;
  readonly y: string;
}

const RUN = /^\w[\w.:-]{0,99}$/;
const METRIC = /^[\w./:%@() -]{1,200}$/;
const MOST_RUNS = 200;
const MOST_METRICS = 40;

function listField(key: string, form: RegExp, most: number): Field<readonly string[]> {
  return {
    key,
    initial: [],
    parse(texts) {
      const names = [...new Set(texts)];
      return names.length <= most && names.every((name) => form.test(name)) ? names : undefined;
    },
    serialize: (names) => names,
  };
}

function numberField(key: string, low: number, high: number): Field<number> {
  return {
    key,
    initial: 0,
    parse([text = ""]) {
      const value = text === "" ? Number.NaN : Number(text);
      return value >= low && value <= high ? value : undefined;
    },
    serialize: (value) => (value === 0 ? [] : [String(value)]),
  };
}

/** Written for an empty selection, which differs from no choice. */
const NO_RUN = "-";
const someRuns = listField("run", RUN, MOST_RUNS);

const runsField: Field<readonly string[] | null> = {
  key: "run",
  initial: null,
  parse: (texts) => (texts.length === 1 && texts[0] === NO_RUN ? [] : someRuns.parse(texts)),
  serialize: (runs) => (runs === null ? [] : runs.length === 0 ? [NO_RUN] : runs),
};

const openField: Field<string | null> = {
  key: "run_open",
  initial: null,
  parse: ([text = ""]) => (RUN.test(text) ? text : undefined),
  serialize: (run) => (run === null ? [] : [run]),
};

const FIELDS = {
  runs: runsField,
  open: openField,
  text: textField("find_run"),
  drawing: choiceField<RunDrawing>("chart", RUN_DRAWINGS, "lines"),
  metrics: listField("metric_of_runs", METRIC, MOST_METRICS),
  axis: choiceField<RunAxis>("over", RUN_AXES, "time"),
  phase: textField("phase"),
  grouping: choiceField<RunGrouping>("each", RUN_GROUPINGS, "repeats"),
  band: choiceField<RunBand>("band", RUN_BANDS, "range"),
  smoothing: numberField("smooth", 0, 0.99),
  warmUp: numberField("warm_up", 0, 1e9),
  outliers: numberField("outliers", 0, 25),
  x: textField("run_x"),
  y: textField("run_y"),
} satisfies { readonly [K in keyof RunsPage]: Field<RunsPage[K]> };

export const INITIAL_RUNS: RunsPage = {
  runs: null,
  open: null,
  text: "",
  drawing: "lines",
  metrics: [],
  axis: "time",
  phase: "",
  grouping: "repeats",
  band: "range",
  smoothing: 0,
  warmUp: 0,
  outliers: 0,
  x: "",
  y: "",
};

export function parseRuns(read: <T>(field: Field<T>) => T): RunsPage {
  return {
    runs: read(FIELDS.runs),
    open: read(FIELDS.open),
    text: read(FIELDS.text),
    drawing: read(FIELDS.drawing),
    metrics: read(FIELDS.metrics),
    axis: read(FIELDS.axis),
    phase: read(FIELDS.phase),
    grouping: read(FIELDS.grouping),
    band: read(FIELDS.band),
    smoothing: read(FIELDS.smoothing),
    warmUp: read(FIELDS.warmUp),
    outliers: read(FIELDS.outliers),
    x: read(FIELDS.x),
    y: read(FIELDS.y),
  };
}

export function writeRuns(page: RunsPage, write: <T>(field: Field<T>, value: T) => void): void {
  write(FIELDS.runs, page.runs);
  write(FIELDS.open, page.open);
  write(FIELDS.text, page.text);
  write(FIELDS.drawing, page.drawing);
  write(FIELDS.metrics, page.metrics);
  write(FIELDS.axis, page.axis);
  write(FIELDS.phase, page.phase);
  write(FIELDS.grouping, page.grouping);
  write(FIELDS.band, page.band);
  write(FIELDS.smoothing, page.smoothing);
  write(FIELDS.warmUp, page.warmUp);
  write(FIELDS.outliers, page.outliers);
  write(FIELDS.x, page.x);
  write(FIELDS.y, page.y);
}

export const changeRuns =
  (changes: Partial<RunsPage>) =>
  (screen: Screen): Screen => ({ ...screen, runs: { ...screen.runs, ...changes } });

/** Adds runs to the comparison, or removes them if all of them are in it. */
export const toggleRuns =
  (runs: readonly string[], chosen: readonly string[]) =>
  (screen: Screen): Screen => {
    const isAll = runs.every((run) => chosen.includes(run));
    const rest = chosen.filter((run) => !runs.includes(run));
    return changeRuns({ runs: isAll ? rest : [...rest, ...runs].slice(0, MOST_RUNS) })(screen);
  };

/** Opens the details of a run next to the comparison; its workload is selected in the other views, too. */
export const openRun =
  ({ run, workload }: { readonly run: string; readonly workload: string }) =>
  (screen: Screen): Screen =>
    changeRuns({ open: run })({ ...screen, selection: { kind: "workload", key: workload } });

/** Shows who hangs in the job of a run. */
export const openHang =
  (row: { readonly run: string; readonly workload: string }) =>
  (screen: Screen): Screen =>
    changeRuns({ drawing: "hang" })(openRun(row)({ ...screen, view: "runs" }));

/** Closes the details of a run; the selection of the other views stays. */
export const closeRun =
  (workload: string) =>
  (screen: Screen): Screen => {
    const isSelected = screen.selection?.kind === "workload" && screen.selection.key === workload;
    return changeRuns({ open: null })(isSelected ? { ...screen, selection: null } : screen);
  };

/** Removes a deleted run from the screen. */
export const forgetRun =
  ({ run, workload }: { readonly run: string; readonly workload: string }) =>
  (screen: Screen): Screen => {
    const { runs } = screen.runs;
    const remaining = runs === null ? null : runs.filter((chosen) => chosen !== run);
    return changeRuns({ runs: remaining })(closeRun(workload)(screen));
  };
