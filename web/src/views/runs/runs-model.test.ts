import { describe, expect, it } from "vitest";
import type { RunAnswer, RunRow, RunTree, RunWorkload } from "../../api/generated.ts";
import { INITIAL_RUNS } from "../../state/runs.ts";
import { describeFigure } from "./figure-text.ts";
import {
  describeSharing,
  describeUnfinished,
  findRows,
  groupRuns,
  labelRuns,
  labelWorkloads,
  listWorkloadRuns,
  showRuns,
} from "./groups.ts";
import { readInsight, toInsightName } from "./insights.tsx";
import { chooseMetrics, nameMetric } from "./metric-menu.tsx";
import { computeSpread, formatNumber, listQuantities } from "./quantities.ts";
import {
  describeRun,
  findBestRun,
  formatSeconds,
  listEnvironment,
  listProblems,
  summarizeRuns,
  unitAfter,
} from "./run-facts.ts";
import { findRuns } from "./search.ts";
import { processLine } from "./smoothing.ts";
import { listColumns } from "./table-drawing.tsx";

/** A completed run without other values. */
function makeRow(run: string, changes: Partial<RunRow> = {}): RunRow {
  return {
    run,
    workload: `run:${run}`,
    executed_with: run,
    name: null,
    experiment: "batch",
    group: null,
    letter: null,
    user: null,
    host: null,
    state: "completed",
    cause: null,
    devices: [],
    device_type: null,
    collocation: null,
    params: {},
    tags: {},
    queued_at: null,
    started_at: null,
    ended_at: null,
    times: { queued_s: null, barrier_s: null, running_s: null, flush_s: null },
    samples: 0,
    energy: null,
    cpu_joules: null,
    work: null,
    joules_per_work: null,
    slowdown: null,
    gpu_util_ratio: null,
    power_watts: null,
    memory_peak_bytes: null,
    cpu_cores: null,
    process_memory_peak_bytes: null,
    results: {},
    ...changes,
  };
}

const NO_TREE: RunTree = { experiments: [], rows: [], left_out: 0 };

describe("quantities of runs", () => {
  it("are those that some run has, with results and numeric params", () => {
    const rows = [
      makeRow("a", { power_watts: 600, results: { loss: 1 }, params: { batch: "32", optimizer: "adam" } }),
      makeRow("b", { params: { batch: "64" } }),
    ];
    expect(listQuantities(rows).map(({ key }) => key)).toEqual(["power", "result:loss", "param:batch"]);
  });

  it("have an interval from two runs on", () => {
    const quantity = listQuantities([makeRow("a", { power_watts: 1 })])[0];
    if (!quantity) throw new Error("no quantity");
    const rows = [10, 12, 14].map((power_watts, at) => makeRow(String(at), { power_watts }));
    // Student's t, 2 degrees of freedom: 12 ± 4.303 · 2/√3.
    expect(computeSpread(rows, quantity)?.low).toBeCloseTo(12 - (4.303 * 2) / Math.sqrt(3), 9);
    expect(computeSpread(rows.slice(0, 1), quantity)).toEqual({ mean: 10, low: null, high: null, count: 1 });
    expect(computeSpread([makeRow("x")], quantity)).toBeNull();
  });
});

describe("groups of runs", () => {
  it("label runs of the same name by the params that differ", () => {
    const rows = ["32", "64", "64"].map((batch, at) =>
      makeRow(String(at), { name: "train", params: { batch, lr: "1" } }),
    );
    expect([...labelRuns(rows).values()]).toEqual(["train · batch 32", "train · batch 64 #1", "train · batch 64 #2"]);
  });

  it("number repeats by their start", () => {
    const rows = [300, 100, 200].map((started_at, at) => makeRow(String(at), { name: "train", started_at }));
    expect([...labelRuns(rows).values()]).toEqual(["train #3", "train #1", "train #2"]);
    const workloads = [
      makeWorkload("y", ["c", "d"], { group: "pair" }),
      makeWorkload("x", ["a", "b"], { group: "pair" }),
      makeWorkload("z", ["e"], { group: "once" }),
    ];
    const [experiment] = makeTree(workloads).experiments;
    if (!experiment) throw new Error("no experiment");
    const members = ["a", "b", "c", "d"].map((run, at) => makeRow(run, { group: "pair", started_at: at }));
    const byRun = new Map([...members, makeRow("e", { group: "once" })].map((row) => [row.run, row]));
    expect([...labelWorkloads(experiment, byRun)]).toEqual([
      ["y", "pair #2"],
      ["x", "pair #1"],
      ["z", "once"],
    ]);
  });

  it("say which runs did not complete", () => {
    expect(describeUnfinished([makeRow("a")])).toBeNull();
    expect(describeUnfinished([makeRow("a", { state: "out_of_memory" })])).toBe("out of memory");
    expect(describeUnfinished([makeRow("a"), makeRow("b", { state: "cancelled" })])).toBe("1 of 2 cancelled");
    const [group] = groupRuns([makeRow("a", { state: "running" })], NO_TREE, "run");
    expect(group?.unfinished).toBe("running");
  });

  it("name the unit of work where all count the same", () => {
    const work = (unit: string): RunRow["work"] => ({ amount: null, basis: "samples", per_second: 1, unit });
    const titleOf = (rows: readonly RunRow[]) => listQuantities(rows).find(({ key }) => key === "throughput")?.title;
    expect(titleOf([makeRow("a", { work: work("samples") })])).toBe("Throughput, samples/s");
    expect(titleOf([makeRow("a", { work: work("samples") }), makeRow("b", { work: work("steps") })])).toBe(
      "Throughput, work/s",
    );
  });

  it("group the runs of an experiment", () => {
    const rows = [makeRow("a"), makeRow("b"), makeRow("c", { experiment: null })];
    const groups = groupRuns(rows, NO_TREE, "experiment");
    expect(groups.map(({ label, rows: { length } }) => [label, length])).toEqual([
      ["batch", 2],
      ["no experiment", 1],
    ]);
  });
});

describe("lines of runs", () => {
  const line = { x: Float64Array.from([0, 1, 2, 3]), values: Float64Array.from([9, 1, Number.NaN, 1]) };

  it("drop the warm-up", () => {
    const { x } = processLine(line, { smoothing: 0, warmUp: 1, outliers: 0 });
    expect([...x]).toEqual([1, 2, 3]);
  });

  it("are smoothed without a bias towards zero, and keep gaps", () => {
    const { values } = processLine(line, { smoothing: 0.5, warmUp: 0, outliers: 0 });
    expect(values[0]).toBe(9);
    expect(values[1]).toBeCloseTo((0.25 * 9 + 0.5 * 1) / 0.75, 9);
    expect(values[2]).toBeNaN();
  });

  it("drop outliers", () => {
    const values = Float64Array.from({ length: 101 }, (_, at) => (at === 50 ? 1e6 : at));
    const treated = processLine({ x: values.map((_, at) => at), values }, { smoothing: 0, warmUp: 0, outliers: 1 });
    expect(Math.max(...treated.values)).toBeLessThanOrEqual(100);
  });
});

describe("metrics of runs", () => {
  const metricOf = (metric: string, label: string | null) => ({ metric, label, scopes: ["run"], runs: 1, unit: null });

  it("shows metrics of the script and derived ones first", () => {
    const metrics = [
      metricOf("power_watts", "Power"),
      metricOf("process_cpu_cores", null),
      metricOf("loss", null),
      metricOf("joules_per_work", "Joules per sample"),
    ];
    const available = { metrics, phases: [], has_steps: false, has_epochs: false };
    expect(chooseMetrics(available)).toEqual(["loss", "joules_per_work", "power_watts"]);
  });

  it("has readable names of process metrics", () => {
    expect(nameMetric("process_cpu_cores", null)).toBe("Process CPU cores");
    expect(nameMetric("val/acc", null)).toBe("val/acc");
    expect(nameMetric("power_watts", "Power")).toBe("Power");
  });
});

function makeWorkload(id: string, runs: readonly string[], changes: Partial<RunWorkload> = {}): RunWorkload {
  return { id, runs, group: null, ...changes } as RunWorkload;
}

function makeTree(workloads: readonly RunWorkload[], repeats: RunTree["experiments"][number]["repeats"] = []): RunTree {
  const runs = workloads.flatMap((workload) => workload.runs);
  const experiment = { last_at: null, name: "batch", repeats, runs: runs.length, states: {}, workloads };
  return { experiments: [experiment], left_out: 0, rows: runs.map((run) => makeRow(run)) };
}

describe("the runs that are shown", () => {
  const many = Array.from({ length: 30 }, (_, at) => `run${at}`);
  const tree = makeTree([makeWorkload("w", many)]);

  it("are the selected ones, even if none", () => {
    expect(showRuns({ ...INITIAL_RUNS, runs: ["run3"] }, tree, ["run1"]).runs).toEqual(["run3"]);
    expect(showRuns({ ...INITIAL_RUNS, runs: [] }, tree, ["run1"]).runs).toEqual([]);
  });

  it("are by default those of the selected workload, with the first opened", () => {
    const workloadRuns = listWorkloadRuns(tree, "run:run7");
    expect(workloadRuns).toEqual(["run7"]);
    expect(showRuns(INITIAL_RUNS, tree, workloadRuns)).toMatchObject({ runs: ["run7"], open: "run7" });
    expect(showRuns({ ...INITIAL_RUNS, open: "run2" }, tree, workloadRuns)).toMatchObject({ open: "run2" });
  });

  it("are by default some of the newest experiment", () => {
    const { runs, open } = showRuns(INITIAL_RUNS, tree, []);
    expect(runs).toEqual(many.slice(0, 24));
    expect(open).toBeNull();
    expect(showRuns(INITIAL_RUNS, undefined, []).runs).toEqual([]);
  });

  it("are none of a workload where none is selected", () => {
    expect(listWorkloadRuns(tree, null)).toEqual([]);
    expect(listWorkloadRuns(undefined, "run:run7")).toEqual([]);
  });

  it("keep their order, without deleted ones", () => {
    expect(findRows(tree, ["run5", "gone", "run2"]).map(({ run }) => run)).toEqual(["run5", "run2"]);
  });
});

describe("repeats", () => {
  const repeats = [{ label: "batch 32", workloads: ["w1", "w2"] }].map((repeat) => ({
    ...repeat,
    fairness: null,
    joules: null,
    makespan_s: null,
    per_second: null,
    slowdown: null,
  }));
  const rows = ["w1", "w2", "w3"].map((executed_with, at) => makeRow(`r${at}`, { executed_with, group: "mps" }));

  it("are one group with their common name", () => {
    const workloads = ["w1", "w2", "w3"].map((id, at) => makeWorkload(id, [`r${at}`], { group: "mps" }));
    const groups = groupRuns(rows, makeTree(workloads, repeats), "repeats");
    expect(groups.map(({ label, rows: members }) => [label, members.length])).toEqual([
      ["mps", 2],
      ["mps", 1],
    ]);
  });

  it("are named by what they have in common where their names differ", () => {
    const workloads = ["w1", "w2"].map((id, at) => makeWorkload(id, [`r${at}`], { group: id }));
    const [group] = groupRuns(rows.slice(0, 2), makeTree(workloads, repeats), "repeats");
    expect(group?.label).toBe("batch 32");
  });

  it("are compared letter by letter where runs shared a GPU", () => {
    const workloads = ["w1", "w2"].map((id, at) => makeWorkload(id, [`r${at}`], { group: "mps" }));
    const letters = ["0_A_mps", "0_B_mps"].map((letter, at) =>
      makeRow(`r${at}`, { executed_with: at === 0 ? "w1" : "w2", letter }),
    );
    expect(groupRuns(letters, makeTree(workloads, repeats), "repeats").map(({ label }) => label)).toEqual([
      "mps · A",
      "mps · B",
    ]);
  });

  it("have no sharing where they ran alone", () => {
    expect(describeSharing(makeRow("a", { collocation: "-" }))).toBeNull();
    expect(describeSharing(makeRow("a", { collocation: "mps" }))).toBe("mps");
    expect(describeSharing(makeRow("a", { collocation: "-", letter: "0_B", device_type: "H200" }))).toBe("time slices");
    // Runs on one CPU have letters, too.
    expect(describeSharing(makeRow("a", { collocation: "-", letter: "0_B" }))).toBeNull();
  });
});

describe("runs in numbers", () => {
  const energy = (joules: number) => ({ joules, method: "measured", scope: "device" });
  const work = (per_second: number) => ({ amount: null, basis: "samples", per_second, unit: "samples" });
  const slowdown = (ratio: number) => ({ baseline: ["a"], basis: "work", energy_ratio: null, ratio });

  it("count failures, add up joules and average slowdowns", () => {
    const rows = [
      makeRow("a", { energy: energy(1000), slowdown: slowdown(1.5) }),
      makeRow("b", { energy: energy(500), slowdown: slowdown(2.5), state: "out_of_memory" }),
      makeRow("c", { state: "running" }),
    ];
    expect(summarizeRuns(rows)).toEqual({ failed: 1, joules: 1500, slowdown: 2 });
    expect(summarizeRuns([makeRow("c")])).toEqual({ failed: 0, joules: 0, slowdown: null });
  });

  it("have a best one only from two runs on", () => {
    const rows = [
      makeRow("slow", { work: work(10), joules_per_work: 3 }),
      makeRow("fast", { work: work(90), joules_per_work: 5 }),
      makeRow("failed", { work: work(900), joules_per_work: 1, state: "failed" }),
      makeRow("unknown"),
    ];
    expect(findBestRun(rows, "throughput", true)?.row.run).toBe("fast");
    expect(findBestRun(rows, "joules_per_work", false)?.row.run).toBe("slow");
    expect(findBestRun(rows.slice(0, 1), "throughput", true)).toBeNull();
    expect(findBestRun(rows, "slowdown", false)).toBeNull();
  });

  it("are never best when they did not complete: cancelled runs look fastest", () => {
    const rows = [
      makeRow("slow", { work: work(1) }),
      makeRow("fast", { work: work(2) }),
      makeRow("cancelled", { work: work(9), state: "cancelled" }),
    ];
    expect(findBestRun(rows, "throughput", true)?.row.run).toBe("fast");
  });

  it("of the same name differ by date, duration and sharing", () => {
    const at = new Date(2026, 10, 18, 9, 12).getTime();
    expect(
      describeRun({
        started_at: at,
        ended_at: at + 3_600_000,
        collocation: "mps=30",
        letter: "0_A_mps",
        device_type: "H200",
      }),
    ).toBe("18 Nov, 09:12 · 1\u00a0h · mps");
    expect(describeRun({ started_at: null, ended_at: null, collocation: "-", letter: null, device_type: null })).toBe(
      "not started",
    );
  });

  it("have the unit of the work after a number", () => {
    const row = makeRow("a", { work: work(1) });
    expect(unitAfter("throughput", row)).toBe(" samples/s");
    expect(unitAfter("joules_per_work", row)).toBe(" per sample");
    expect(unitAfter("power", row)).toBe("");
    expect(unitAfter("throughput", makeRow("b"))).toBe("");
  });

  it("format short times in milliseconds and missing ones as a dash", () => {
    expect([0.0042, 1.5, null].map(formatSeconds)).toEqual(["4 ms", "1.5 s", "–"]);
    expect(formatNumber(12.3456, "joules")).toBe("12.35 J");
    expect(formatNumber(Number.NaN, null)).toBe("–");
  });
});

describe("the environment of a run", () => {
  const answer = { environment: {}, cwd: "/home/ada", listens_to: [] };

  it("lists recorded values only", () => {
    expect(listEnvironment(answer)).toEqual([{ name: "Folder", value: "/home/ada" }]);
  });

  it("shows the short commit and whether there were uncommitted changes", () => {
    const git = { commit: "0123456789abcdef0123", is_dirty: true };
    const facts = listEnvironment({ ...answer, environment: { git } });
    expect(facts).toContainEqual({ name: "Commit", value: "0123456789ab, uncommitted changes" });
    expect(listEnvironment({ ...answer, environment: { git: { ...git, is_dirty: false } } })).toContainEqual({
      name: "Commit",
      value: "0123456789ab",
    });
  });

  it("finds the driver version by its column", () => {
    const driver = "name, uuid, driver_version\nH200, GPU-1, 570.86.10\nH200, GPU-2, 570.86.10";
    expect(listEnvironment({ ...answer, environment: { driver } })).toContainEqual({
      name: "Driver",
      value: "570.86.10",
    });
    expect(listEnvironment({ ...answer, environment: { driver: "name\nH200" } })).toHaveLength(1);
  });

  it("counts packages and shortens the system", () => {
    const environment = { packages: { torch: "2.13", numpy: "2.4" }, system: "Linux 6.8.0 #1 SMP Ubuntu", cpu: "" };
    expect(listEnvironment({ ...answer, environment, listens_to: ["nvml", "host"] }).slice(1)).toEqual([
      { name: "Packages", value: "2" },
      { name: "System", value: "Linux 6.8.0 #1" },
      { name: "Listeners", value: "nvml, host" },
    ]);
  });
});

describe("problems of a run", () => {
  const noProblems = {
    exceptions: [],
    hangs: [],
    listeners: {},
    not_finite: 0,
    dropped: 0,
    leftovers: 0,
    left_out: {},
  };

  it("are none where nothing went wrong", () => {
    expect(listProblems({ ...noProblems, listeners: { nvml: { state: "ended", missed: 0 } } })).toEqual([]);
  });

  it("are listed one per line, listeners with their reason", () => {
    const answer: Pick<RunAnswer, keyof typeof noProblems> = {
      exceptions: ["ValueError: no data"],
      hangs: [
        { kind: "deadlock", title: "Rank 1 waits for a lock", place: "train.py:7 in load", reason: "Rank 0 waits." },
        { kind: "absent", title: "Rank 2 sleeps", ended_at: 5 },
      ],
      listeners: {
        nvml: { state: "unavailable", message: "no driver" },
        host: { state: "ended", missed: 3 },
      },
      not_finite: 2,
      dropped: 1,
      leftovers: 4,
      left_out: { marks: 7 },
    };
    expect(listProblems(answer)).toEqual([
      "ValueError: no data",
      "Rank 1 waits for a lock (train.py:7 in load). Rank 0 waits.",
      "Went on since: Rank 2 sleeps.",
      "Listener nvml unavailable: no driver.",
      "Listener host missed 3 samples.",
      "2 values were not finite and are not shown.",
      "1 value was dropped.",
      "4 processes were still running after the run.",
      "7 marks were dropped: over the limit of the server.",
    ]);
  });
});

describe("searching runs", () => {
  const rows = [
    makeRow("a", { params: { "batch-size": "512", Optimizer: "adam" }, results: { loss: 0.4 }, user: "ada" }),
    makeRow("b", { params: { "batch-size": "64" }, results: { loss: 0.9 }, user: "grace", power_watts: 300 }),
  ];
  const search = (text: string) => [...findRuns(rows, text)];

  it("compares params, results and quantities with a value", () => {
    expect(search("batch-size>100")).toEqual(["a"]);
    expect(search("loss<0.5")).toEqual(["a"]);
    expect(search("power>=300")).toEqual(["b"]);
    expect(search("optimizer=adam")).toEqual(["a"]);
  });

  it("finds words in names and params, and all runs without a search", () => {
    expect(search("grace")).toEqual(["b"]);
    expect(search("")).toEqual(["a", "b"]);
    expect(search("nobody")).toEqual([]);
  });
});

describe("the table of runs", () => {
  it("has a column for each param and quantity that some run has", () => {
    const rows = [
      makeRow("a", { params: { optimizer: "adam", batch: "32" }, started_at: 0 }),
      makeRow("b", { params: { optimizer: "sgd" }, collocation: "-" }),
    ];
    const tree: RunTree = { experiments: [], rows, left_out: 0 };
    const columns = listColumns(groupRuns(rows, tree, "run"), listQuantities(rows));
    expect(columns.map(({ key }) => key)).toEqual([
      "run",
      "experiment",
      "state",
      "collocation",
      "started",
      "param:optimizer",
      "param:batch",
    ]);
    const csv = (key: string) => rows.map((row) => columns.find((column) => column.key === key)?.csv(row));
    expect(csv("started")).toEqual(["1970-01-01T00:00:00.000Z", null]);
    expect(csv("param:batch")).toEqual([32, null]);
    expect(csv("collocation")).toEqual([null, null]);
  });
});

describe("insights", () => {
  it("are stored under a URL-safe name", () => {
    expect(toInsightName("  What sharing costs: 20 %! ")).toBe("what-sharing-costs-20");
    expect(toInsightName("…")).toBe("");
    expect(toInsightName("x".repeat(99))).toHaveLength(60);
  });

  it("restore known fields of the expected type", () => {
    const page = { runs: ["a"], drawing: "bars", smoothing: "much", metrics: ["loss"], open: "a", mood: "good" };
    expect(readInsight({ page })).toEqual({ ...INITIAL_RUNS, runs: ["a"], drawing: "bars", metrics: ["loss"] });
    expect(readInsight({})).toEqual(INITIAL_RUNS);
  });
});

describe("text of an exported figure", () => {
  const groups = (grouping: "run" | "repeats") => {
    const rows = [makeRow("a", { user: "ada" }), makeRow("b", { user: "bo", state: "failed" })];
    const workloads = rows.map(({ run }) => ({ id: run, group: null, runs: [run] }));
    const experiments = [{ name: "batch", workloads, repeats: [{ workloads: ["a", "b"], label: "batch 64" }] }];
    return groupRuns(rows, { rows, experiments } as unknown as RunTree, grouping);
  };

  it("names what is drawn, of which experiment, and who ran it", () => {
    const text = describeFigure({ ...INITIAL_RUNS, drawing: "lines", grouping: "run", axis: "step" }, groups("run"));
    expect(text.title).toBe("Metrics over steps: batch");
    expect(text.legend?.map(({ label }) => label)).toEqual(["a", "b (failed)"]);
    expect(text.caption).toBe("2\u00a0runs; ada, bo");
  });

  it("says how lines differ from their samples", () => {
    const page = {
      ...INITIAL_RUNS,
      drawing: "lines",
      grouping: "repeats",
      band: "interval",
      smoothing: 0.5,
      warmUp: 10,
      outliers: 1,
    } as const;
    const { caption } = describeFigure(page, groups("repeats"));
    expect(caption).toBe(
      "2\u00a0runs; ada, bo; repeats grouped; mean with its 95 % interval; smoothing 0.50; first 10 s left out; values beyond p1 and p99 left out",
    );
  });

  it("leaves treatments of lines out of a scatter plot", () => {
    const { caption } = describeFigure(
      { ...INITIAL_RUNS, drawing: "scatter", grouping: "run", smoothing: 0.9 },
      groups("run"),
    );
    expect(caption).toBe("2\u00a0runs; ada, bo");
  });
});
