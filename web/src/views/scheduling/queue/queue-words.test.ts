import { describe, expect, it } from "vitest";
import type { LikelyStart, QueueRow, StartChange, StartForecast, WaitKind } from "../../../api/generated.ts";
import { HOUR_MS } from "../../../base/durations.ts";
import { INITIAL_SCHEDULING, NO_WHAT_IF, QUEUE_COLUMNS } from "../../../state/scheduling.ts";
import { sortRows } from "../../../widgets/data-table/columns.ts";
import { countColumns } from "./course-layout.ts";
import { filterQueue } from "./filter-queue.ts";
import { describeAlternative, describeForecast } from "./forecast-form.tsx";
import { queueColumns } from "./queue-columns.tsx";
import { describeStart } from "./start-bar.tsx";
import { changeNodes, listChangedStarts, listChips } from "./what-if-changes.ts";
import { formatMeasure } from "./what-if-panel.tsx";
import {
  describeBlocked,
  describeCalibration,
  describePosition,
  makeAxis,
  summarizeQueue,
  WAITS_FOR,
} from "./words.ts";

function makeRow(workload: string, changes: Partial<QueueRow> = {}): QueueRow {
  return {
    ahead: 0,
    ahead_gpus: 0,
    gpus: 8,
    likely: null,
    limit_s: 3600,
    machine_type: null,
    name: null,
    nodes: 1,
    partition: "main",
    planned_at: null,
    position: null,
    priority: null,
    project: null,
    promised_at: null,
    qos: null,
    reason: null,
    reason_text: null,
    scheduler_at: null,
    slipped_s: null,
    submitted_at: null,
    user: null,
    waited_s: null,
    waits_for: "room",
    workload,
    ...changes,
  };
}

const LIKELY: LikelyStart = { from_at: HOUR_MS, likely_at: 2 * HOUR_MS, to_at: 4 * HOUR_MS, level: 0.8 };

describe("a waiting workload", () => {
  const rows = [
    makeRow("slurm:1", { position: 1, waited_s: 60, user: "ada", gpus: 64 }),
    makeRow("slurm:2", { waits_for: "held", waited_s: 900, partition: "other" }),
    makeRow("slurm:3", { waits_for: "dependency", waited_s: null }),
    makeRow("slurm:4", { waits_for: "dependency", reason_text: "Waits for slurm:1" }),
    makeRow("slurm:5", { waits_for: "limit" }),
  ];

  it("is in line, held, or blocked", () => {
    expect(summarizeQueue(rows)).toMatchObject({ held: 1, blocked: 3, longest: { workload: "slurm:2" } });
    expect(summarizeQueue([])).toEqual({ held: 0, blocked: 0, longest: null });
    expect(describeBlocked(rows)).toBe("2 for a dependency, 1 for a limit");
    expect(describeBlocked(rows.slice(0, 2))).toBe("");
  });

  it("has a position in line, or what it waits for", () => {
    expect(rows.map(describePosition)).toEqual([
      "position 1",
      "held",
      "waits for a dependency",
      "waits for a dependency",
      "waits for a limit",
    ]);
    const kinds = Object.keys(WAITS_FOR) as readonly WaitKind[];
    for (const waits_for of kinds) expect(describePosition({ position: null, waits_for })).not.toContain("undefined");
  });

  it("is found by partition, text and comparisons", () => {
    const find = (queue: string, text: string) => filterQueue(rows, { queue, text }).map(({ workload }) => workload);
    expect(find("other", "")).toEqual(["slurm:2"]);
    expect(find("", "ada")).toEqual(["slurm:1"]);
    expect(find("", "gpus>8")).toEqual(["slurm:1"]);
    expect(find("", "waited>=60")).toEqual(["slurm:1", "slurm:2"]);
    expect(find("main", "user=grace")).toEqual([]);
    expect(find("", INITIAL_SCHEDULING.text)).toHaveLength(rows.length);
  });
});

describe("the table of the queue", () => {
  const columns = queueColumns(makeAxis(0, []));

  it("has the columns that a link can sort by", () => {
    expect(columns.map(({ key }) => key).toSorted()).toEqual([...QUEUE_COLUMNS].toSorted());
  });

  it("is sorted by position within each partition, workloads not in line last", () => {
    const rows = [
      makeRow("b10", { partition: "b", position: 10 }),
      makeRow("a-", { partition: "a" }),
      makeRow("a2", { partition: "a", position: 2 }),
      makeRow("b9", { partition: "b", position: 9 }),
    ];
    const sorted = sortRows(rows, columns, { column: "position", descending: false });
    expect(sorted.map(({ workload }) => workload)).toEqual(["a2", "a-", "b9", "b10"]);
  });

  it("is sorted by likely start, or by latest start where there is none", () => {
    const rows = [
      makeRow("planned", { planned_at: HOUR_MS }),
      makeRow("unknown"),
      makeRow("likely", { likely: LIKELY, planned_at: 0 }),
    ];
    const sorted = sortRows(rows, columns, { column: "start", descending: false });
    expect(sorted.map(({ workload }) => workload)).toEqual(["planned", "likely", "unknown"]);
  });

  it("describes the calibration of its intervals", () => {
    expect(describeCalibration({ is_learned: false, calibrated_on: 9 })).toMatch(/rough/);
    expect(describeCalibration({ is_learned: true, calibrated_on: 0 })).toMatch(/not calibrated/);
    expect(describeCalibration({ is_learned: true, calibrated_on: 1200 })).toBe(
      "80 % intervals, calibrated on 1,200 waits",
    );
  });
});

describe("a start", () => {
  const axis = makeAxis(0, [8 * HOUR_MS]);
  const plain = (text: string) => text.replaceAll("\u00a0", " ");

  it("names the interval, the latest start and the scheduler's estimate, where there are any", () => {
    expect(plain(describeStart(axis, LIKELY, 8 * HOUR_MS, 3 * HOUR_MS))).toBe(
      "likely in 2 h; 80 %: in 1 h to 4 h; latest start in 8 h; scheduler's estimate: in 3 h",
    );
    expect(describeStart(axis, null, null)).toBe("no start planned");
  });

  it("shows the day once where an interval lies within it", () => {
    const noon = new Date(2026, 5, 3, 12).getTime();
    const start: StartForecast = {
      partition: "main",
      machine_type: null,
      gpus: 1,
      hours: 1,
      ahead: 0,
      free_gpus: 0,
      is_at_once: false,
      wait_s: 3600,
      likely_at: noon,
      intervals: [{ from_at: noon, to_at: noon + 2 * HOUR_MS, level: 0.8 }],
      plan_at: noon,
      why: {
        predicted_by: "simulation",
        alone_at: 0,
        uncertain: "nothing",
        run_times_ratio: null,
        says_little: false,
        text: "",
      },
    };
    expect(describeForecast(start, noon)).toMatch(/12:00 – 14:00$/);
    expect(describeAlternative({ change: "partition", start })).toBe("In main");
    expect(describeAlternative({ change: "shorter", start })).toBe("For 1 h");
    expect(describeAlternative({ change: "smaller", start })).toBe("With 1 GPU");
    expect(describeAlternative({ change: "smaller", start: { ...start, gpus: 4 } })).toBe("With 4 GPUs");
  });
});

describe("a what-if", () => {
  it("keeps the last number of each partition", () => {
    const first = { ...NO_WHAT_IF, ...changeNodes(NO_WHAT_IF, "add", "main", 4) };
    expect(first.added).toEqual(["main:4"]);
    expect(changeNodes({ ...first, added: ["main:4", "other:1"] }, "add", "main", 8)).toEqual({
      added: ["other:1", "main:8"],
    });
    expect(changeNodes(first, "cap", "main", 64)).toEqual({ limits: ["main:64"] });
  });

  it("does not confuse partitions whose names have the same prefix", () => {
    expect(changeNodes({ ...NO_WHAT_IF, added: ["main-large:2"] }, "add", "main", 4).added).toEqual([
      "main-large:2",
      "main:4",
    ]);
  });

  it("drains a node once, and nothing without a name", () => {
    const drained = { ...NO_WHAT_IF, ...changeNodes(NO_WHAT_IF, "drain", "gpu-001", 0) };
    expect(changeNodes(drained, "drain", "gpu-001", 0).drained).toEqual(["gpu-001"]);
    expect(changeNodes(NO_WHAT_IF, "drain", "", 4)).toEqual({});
  });

  it("lists its changes, each removable", () => {
    const choice = {
      ...NO_WHAT_IF,
      added: ["k8s:llm:4"],
      limits: ["main:64"],
      drained: ["gpu-001", "gpu-002"],
      first: ["slurm:7"],
    };
    const chips = listChips(choice);
    expect(chips.map(({ words }) => words)).toEqual([
      "+4 nodes in k8s:llm",
      "≤ 64 GPUs in main",
      "gpu-001 drained",
      "gpu-002 drained",
      "slurm:7 first",
    ]);
    expect(chips.map(({ without }) => without)).toEqual([
      { added: [] },
      { limits: [] },
      { drained: ["gpu-002"] },
      { drained: ["gpu-001"] },
      { first: [] },
    ]);
    expect(listChips(NO_WHAT_IF)).toEqual([]);
  });

  it("lists starts that change by a minute or more, the largest change first", () => {
    const change = (workload: string, change_s: number | null): StartChange => ({
      baseline_at: 0,
      change_s,
      changed_at: 0,
      gpus: 1,
      high_s: null,
      low_s: null,
      partition: "main",
      user: null,
      workload,
    });
    const rows = [change("a", 59), change("b", 60), change("c", -3600), change("d", null)];
    expect(listChangedStarts(rows).map(({ workload }) => workload)).toEqual(["c", "b"]);
  });

  it("is measured with significant digits only", () => {
    expect(formatMeasure(0.123, "")).toBe("0.12");
    expect(formatMeasure(12.34, "GPUs")).toBe("12.3 GPUs");
    expect(formatMeasure(1234.5, "jobs")).toMatch(/^123[45] jobs$/);
    expect(formatMeasure(7200, "s")).toMatch(/^2\u00a0h/);
  });

  it("draws nodes two GPUs high", () => expect([1, 2, 7, 8].map(countColumns)).toEqual([1, 1, 4, 4]));
});
