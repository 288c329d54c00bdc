import { describe, expect, it } from "vitest";
import type { RunRow, RunTree } from "../../api/generated.ts";
import { groupRuns, sayApart } from "./groups.ts";
import { chooseMetrics, sayMetric } from "./metric-menu.tsx";
import { listQuantities, spreadOf } from "./quantities.ts";
import { treatLine } from "./smoothing.ts";

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
  it("are those that some run has, the script's and numeric params among them", () => {
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
    expect(spreadOf(rows, quantity)?.low).toBeCloseTo(12 - (4.303 * 2) / Math.sqrt(3), 9);
    expect(spreadOf(rows.slice(0, 1), quantity)).toEqual({ mean: 10, low: null, high: null, count: 1 });
    expect(spreadOf([makeRow("x")], quantity)).toBeNull();
  });
});

describe("groups of runs", () => {
  it("tell runs of one name apart by what differs", () => {
    const rows = ["32", "64", "64"].map((batch, at) =>
      makeRow(String(at), { name: "train", params: { batch, lr: "1" } }),
    );
    expect([...sayApart(rows).values()]).toEqual(["train · batch 32", "train · batch 64", "train · batch 64 (2)"]);
  });

  it("take runs of an experiment together", () => {
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

  it("lose their beginning where it is warm-up", () => {
    const { x } = treatLine(line, { smoothing: 0, warmUp: 1, outliers: 0 });
    expect([...x]).toEqual([1, 2, 3]);
  });

  it("are smoothed without a bias towards zero, gaps staying gaps", () => {
    const { values } = treatLine(line, { smoothing: 0.5, warmUp: 0, outliers: 0 });
    expect(values[0]).toBe(9);
    expect(values[1]).toBeCloseTo((0.25 * 9 + 0.5 * 1) / 0.75, 9);
    expect(values[2]).toBeNaN();
  });

  it("lose values far from all others", () => {
    const values = Float64Array.from({ length: 101 }, (_, at) => (at === 50 ? 1e6 : at));
    const treated = treatLine({ x: values.map((_, at) => at), values }, { smoothing: 0, warmUp: 0, outliers: 1 });
    expect(Math.max(...treated.values)).toBeLessThanOrEqual(100);
  });
});

describe("metrics of runs", () => {
  const named = (metric: string, label: string | null) => ({ metric, label, scopes: ["run"], runs: 1, unit: null });

  it("shows what the script says and what its work cost first", () => {
    const metrics = [
      named("power_watts", "Power"),
      named("process_cpu_cores", null),
      named("loss", null),
      named("joules_per_work", "Joules per sample"),
    ];
    const known = { metrics, phases: [], has_steps: false, has_epochs: false };
    expect(chooseMetrics(known)).toEqual(["loss", "joules_per_work", "power_watts"]);
  });

  it("says names of processes in words", () => {
    expect(sayMetric("process_cpu_cores", null)).toBe("Process CPU cores");
    expect(sayMetric("val/acc", null)).toBe("val/acc");
    expect(sayMetric("power_watts", "Power")).toBe("Power");
  });
});
