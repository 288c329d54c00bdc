import { describe, expect, it } from "vitest";
import type { NameColumn } from "../../api/columns.ts";
import type { TraceAnswer, TraceChange, TraceReportAnswer, TraceRow, WhatIf } from "../../api/generated.ts";
import type { Marey } from "../../api/marey.ts";
import type { TraceCommunication, TraceOperators } from "../../api/traces-client.ts";
import { INITIAL_PARALLEL } from "../../state/parallel.ts";
import { describeLink, formatMeasure, measureLink, sumLinks } from "./details/links.ts";
import { filterOperators, listOperators, toCsv as operatorsToCsv } from "./details/operator-table.tsx";
import { describeAlignment } from "./details/ranks-pane.tsx";
import { toCsv as changesToCsv, formatSigned } from "./diff-panel.tsx";
import { findKeyAction } from "./graph/keys.ts";
import type { GraphStage } from "./graph/stage.ts";
import { fitPage, hasNoSpans, makeScene, titleOf } from "./scene.ts";
import { listSpans, toCsv as spansToCsv } from "./span-table.tsx";
import { formatShare } from "./step-strip.tsx";
import { findShownSteps, type Step } from "./steps.ts";
import { describe as describeTrace, shareOf } from "./strip.tsx";
import { type FileToSend, listDroppedFiles } from "./traces/files.ts";
import { describe as describeEntry } from "./traces/trace-list.tsx";
import { findBestWhatIf, meanStep, nameKind } from "./verdict-cards.tsx";

const plain = (text: string) => text.replaceAll("\u00a0", " ");

/** A column of names; null is missing. */
function nameColumn(...values: readonly (string | null)[]): NameColumn {
  const names: (string | null)[] = [null, ...new Set(values.filter((value) => value !== null))];
  return { codes: Uint32Array.from(values, (value) => names.indexOf(value)), names };
}

function makeStep(step: number, fromNs: number, toNs: number): Step {
  const durationNs = toNs - fromNs;
  return {
    step,
    fromNs,
    toNs,
    active: { fromNs, toNs },
    durationNs,
    computeNs: durationNs / 2,
    waitNs: durationNs / 4,
    transferNs: 0,
    idleNs: durationNs / 4,
  };
}

const ROW: TraceRow = {
  format: "Kineto",
  headline: null,
  imported_at: 0,
  name: "run",
  notes: [],
  problem: null,
  progress: null,
  ranks: 4,
  spans: 12_000,
  state: "ready",
  steps: 3,
  trace_id: "t1",
  workload_id: "slurm:7",
};

function makeAnswer(changes: Partial<TraceAnswer> = {}): TraceAnswer {
  return { extent_ns: 1000, origin_ms: null, row: ROW, stages: [], ranks: [], report: null, ...changes } as TraceAnswer;
}

describe("the visible part of a trace", () => {
  const steps = [makeStep(1, 0, 400), makeStep(2, 400, 600), makeStep(3, 600, 1000)];

  it("is the typical step without a requested window", () => {
    const scene = makeScene(makeAnswer(), steps, null);
    expect(scene.step).toBe(1);
    expect(scene.window.fromNs).toBeLessThan(0);
    expect(scene.window.toNs).toBeGreaterThan(400);
    expect(scene.originNs).toBe(0);
    expect(scene.stepEndsNs).toEqual([]);
    expect(titleOf(steps, scene)).toBe("Step 1 (typical)");
  });

  it("has the ends of steps where several are visible", () => {
    const scene = makeScene(makeAnswer(), steps, { fromNs: 300, toNs: 1000 });
    expect(scene.step).toBeNull();
    expect(scene.originNs).toBe(400);
    expect(scene.stepEndsNs).toEqual([400, 600, 1000]);
    expect(titleOf(steps, scene)).toBe("Steps 2 to 3");
  });

  it("is the whole trace where there are no steps", () => {
    const scene = makeScene(makeAnswer({ extent_ns: 0 }), [], null);
    expect(scene.extent).toEqual({ fromNs: 0, toNs: 1 });
    expect(titleOf([], scene)).toBe("Whole trace");
    expect(findShownSteps([], scene.window)).toBeNull();
  });

  it("is a flow without times, and shows ranks without stages", () => {
    const untimed = makeAnswer({ row: { ...ROW, spans: 0 } });
    expect(hasNoSpans(untimed)).toBe(true);
    expect(hasNoSpans(makeAnswer({ row: { ...ROW, spans: 0, state: "importing" } }))).toBe(false);
    expect(fitPage(INITIAL_PARALLEL, untimed).drawing).toBe("flow");
    expect(fitPage({ ...INITIAL_PARALLEL, drawing: "flow_table" }, untimed).drawing).toBe("flow_table");
    expect(fitPage(INITIAL_PARALLEL, makeAnswer()).level).toBe("rank");
    const stages = [0, 1].map((stage) => ({ stage, ranks: [stage] }));
    expect(fitPage(INITIAL_PARALLEL, makeAnswer({ stages }))).toBe(INITIAL_PARALLEL);
    expect(fitPage(INITIAL_PARALLEL, undefined)).toBe(INITIAL_PARALLEL);
  });

  it("has the share of each part over all steps", () => {
    expect(plain(formatShare(steps, 0))).toBe("50 %");
    expect(plain(formatShare([], 0))).toBe("0 %");
  });
});

describe("a trace in one line", () => {
  it("shows the progress of its import", () => {
    expect(describeEntry({ ...ROW, state: "importing" })).toBe("uploading");
    expect(plain(describeEntry({ ...ROW, state: "importing", progress: 0.4 }))).toBe("importing, 40 %");
    expect(describeEntry({ ...ROW, state: "failed" })).toBe("import failed");
    expect(describeTrace(makeAnswer({ row: { ...ROW, state: "failed" } }))).toBe("import failed");
  });

  it("counts ranks, steps and spans, or shows that there are no times", () => {
    expect(plain(describeEntry(ROW))).toBe("Kineto · 4 ranks · 3 steps · 12,000 spans · slurm:7");
    expect(plain(describeEntry({ ...ROW, spans: 0, workload_id: null }))).toBe(
      "Kineto · 4 ranks · operator graph only",
    );
    const stages = [0, 1].map((stage) => ({ stage, ranks: [stage] }));
    expect(plain(describeTrace(makeAnswer({ stages })))).toBe("Kineto · 4 ranks · 2 stages · 3 steps · 12,000 spans");
    expect(plain(describeTrace(makeAnswer({ row: { ...ROW, spans: 0 } })))).toBe(
      "Kineto · 4 ranks · operator graph only: no times recorded",
    );
  });

  it("shows the share of a part of the time", () => {
    const part = (compute_s: number, step_s: number) => ({
      rank: 0,
      compute_s,
      waiting_s: 0,
      transferring_s: 0,
      idle_s: 0,
      communication_s: 0,
      exposed_s: 0,
      step_s,
    });
    expect(plain(shareOf([part(1, 2), part(0, 2)], "compute_s"))).toBe("25 %");
    expect(shareOf([], "compute_s")).toBe("–");
  });
});

describe("verdicts", () => {
  const whatIf = (question: string, speed_up: number | null) => ({ question, speed_up }) as WhatIf;

  it("are named by their kind, even an unknown one", () => {
    expect(nameKind("launch_bound")).toBe("launch-bound");
    expect(nameKind("cosmic_rays")).toBe("cosmic rays");
  });

  it("show the best what-if where it is noticeable", () => {
    const report = { what_if: [whatIf("a", 1.2), whatIf("b", null), whatIf("c", 1.5)] } as unknown as TraceReportAnswer;
    expect(findBestWhatIf(report).map(({ question }) => question)).toEqual(["c"]);
    expect(findBestWhatIf({ ...report, what_if: [whatIf("a", 1.005)] })).toEqual([]);
  });

  it("are compared with the mean step", () => {
    const steps = [1, 3].map((length_s) => ({ length_s }));
    expect(meanStep({ steps } as unknown as TraceReportAnswer)).toBe(2);
    expect(meanStep({ steps: [] })).toBe(0);
  });

  it("describe the clock error", () => {
    const report = (clocks: readonly (readonly [number, number])[], error_s: number | null) =>
      ({
        alignment: { clocks: clocks.map(([offset_s, drift_ppm], rank) => ({ rank, offset_s, drift_ppm })), error_s },
      }) as unknown as TraceReportAnswer;
    expect(plain(describeAlignment(report([[0, 0]], null)))).toBe(
      "No clock was corrected. The clock error is unknown.",
    );
    const corrected = report(
      [
        [0, 0],
        [-0.002, 0],
        [0.001, 1],
      ],
      0.00001,
    );
    expect(plain(describeAlignment(corrected))).toMatch(
      /^2 clocks were corrected, by up to 2(\.00)? ms\. They agree to within 10(\.0)? µs/,
    );
  });
});

describe("links between ranks", () => {
  const communication: TraceCommunication = {
    count: 5,
    fromRank: Float64Array.of(0, 0, 1, 0, 2),
    toRank: Float64Array.of(1, 1, 0, Number.NaN, 1),
    kind: nameColumn("send", "recv", "send", null, "send"),
    processGroup: nameColumn(null, null, null, "dp", null),
    calls: Float64Array.of(2, 3, 1, 10, 6),
    bytes: Float64Array.of(1000, 0, Number.NaN, 4000, 50),
    timeNs: Float64Array.of(500, 500, 100, 0, 70),
    waitNs: Float64Array.of(10, Number.NaN, 0, 7, 0),
  };
  const [first, second, group] = sumLinks(communication);
  if (!first || !second || !group) throw new Error("three links or more are expected");

  it("are added up by pair, and by rank and group", () => {
    expect(sumLinks(communication).map(({ from, to }) => `${from} ${to}`)).toEqual(["0 1", "1 0", "0 dp", "2 1"]);
    expect(first).toMatchObject({ from: 0, to: "1", isGroup: false, calls: 5, bytes: 1000, timeNs: 1000, waitNs: 10 });
    expect([...first.kinds]).toEqual(["send", "recv"]);
    expect(second).toMatchObject({ from: 1, to: "0", calls: 1, bytes: 0 });
    expect(group).toMatchObject({ to: "dp", isGroup: true });
  });

  it("have bytes and bandwidth only where both are measured", () => {
    expect(measureLink(first, "bandwidth")).toBe(1e9);
    expect(measureLink(second, "bytes")).toBeNull();
    expect(measureLink(group, "bytes")).toBe(4000);
    expect(measureLink(group, "bandwidth")).toBeNull();
    expect(measureLink(first, "wait")).toBe(10);
  });

  it("are described with their measured values", () => {
    expect(plain(describeLink(second))).toBe("1 → 0: send × 1 · 100 ns · waits 0 ns");
    expect(plain(describeLink(first))).toMatch(
      /^0 → 1: send, recv × 5 · 1\.00 µs · waits 10 ns · 1\S* k?B\S* · .*\/s$/i,
    );
    expect(plain(formatMeasure(1500, "time"))).toBe("1.50 µs");
  });
});

describe("tables of a trace", () => {
  const operators: TraceOperators = {
    count: 2,
    name: nameColumn("aten::mm", null),
    class: nameColumn("compute", null),
    phase: nameColumn("forward", null),
    calls: Float64Array.of(4, 1),
    totalNs: Float64Array.of(100, 50),
    meanNs: Float64Array.of(25, 50),
    maxNs: Float64Array.of(40, 50),
    share: Float64Array.of(0.66, 0.33),
    ranks: Float64Array.of(4, 1),
    worstRank: Float64Array.of(3, Number.NaN),
    imbalance: Float64Array.of(0.5, Number.NaN),
    flops: Float64Array.of(Number.NaN, Number.NaN),
  };

  it("list operators, missing values as null", () => {
    const rows = listOperators(operators);
    expect(rows.map(({ name, worstRank, flops }) => [name, worstRank, flops])).toEqual([
      ["aten::mm", 3, null],
      ["unnamed", null, null],
    ]);
    expect(operatorsToCsv(rows).trim().split(/\r?\n/).slice(1)).toEqual([
      "aten::mm,compute,forward,4,100,25,40,0.66,4,3,0.5,",
      "unnamed,,,1,50,50,50,0.33,1,,,",
    ]);
  });

  it("filter operators by all nameColumn, ignoring case", () => {
    const rows = listOperators(operators);
    expect(filterOperators(rows, "MM aten").map(({ name }) => name)).toEqual(["aten::mm"]);
    expect(filterOperators(rows, "mm conv")).toEqual([]);
    expect(filterOperators(rows, " ")).toHaveLength(2);
  });

  const marey = {
    rows: [{ label: "stage 0" }, { label: "stage 1" }],
    spans: {
      count: 2,
      span: Float64Array.of(7, Number.NaN),
      worstSpan: Float64Array.of(Number.NaN, 9),
      row: Float64Array.of(0, 1),
      name: nameColumn("forward mb0", "send"),
      class: nameColumn("phase", "communication"),
      phase: nameColumn("forward", null),
      microBatch: Float64Array.of(0, Number.NaN),
      startNs: Float64Array.of(100, 200),
      endNs: Float64Array.of(150, 300),
      waitNs: Float64Array.of(Number.NaN, 20),
      members: Float64Array.of(1, 12),
      maxNs: Float64Array.of(50, 30),
    },
  } as unknown as Marey;

  it("list spans; merged ones open the longest", () => {
    const rows = listSpans(marey, "");
    expect(rows.map(({ id, row, lengthNs, members }) => [id, row, lengthNs, members])).toEqual([
      [7, "stage 0", 50, 1],
      [9, "stage 1", 100, 12],
    ]);
    expect(listSpans(marey, "MB0 forward").map(({ id }) => id)).toEqual([7]);
    expect(spansToCsv(rows).trim().split(/\r?\n/)[1]).toBe("stage 0,forward mb0,phase,forward,0,100,50,,1,50,7");
  });

  it("list differences between two traces with their sign", () => {
    const change: TraceChange = {
      after_s: 2,
      before_s: null,
      difference_s: -0.5,
      high_s: null,
      is_significant: true,
      kind: "operator",
      low_s: null,
      name: "aten::mm, fused",
      rank: null,
      sentence: "",
    };
    expect(changesToCsv([change]).trim().split(/\r?\n/)[1]).toBe('operator,"aten::mm, fused",,,2,-0.5,,,1');
    expect([0.5, -0.5, 0].map((seconds) => formatSigned(seconds).charAt(0))).toEqual(["+", "−", "0"]);
  });
});

describe("keys on the graph", () => {
  const extent = { fromNs: 0, toNs: 1000 };
  const index = {
    findFirst: (fromNs: number) => (fromNs < 100 ? 3 : null),
    findNeighbor: (span: number, step: number) => (span === 3 && step === -1 ? null : span + step),
    findBeside: (span: number, step: number) => span + 10 * step,
  };
  const spans = { startNs: Float64Array.of(0, 100), endNs: Float64Array.of(50, 300) };
  const stage = {
    window: { fromNs: 0, toNs: 500 },
    index,
    drawn: { marey: { spans } },
  } as unknown as GraphStage;
  const press = (key: string, selected: number | null = null) => findKeyAction(key, { stage, extent, selected });

  it("move and zoom the window", () => {
    expect(press("ArrowRight")).toEqual({ kind: "window", window: { fromNs: 100, toNs: 600 } });
    const closer = press("+");
    const farther = press("-");
    const length = (action: typeof closer) =>
      action?.kind === "window" ? action.window.toNs - action.window.fromNs : Number.NaN;
    expect(length(closer)).toBeCloseTo(350);
    expect(length(farther)).toBeCloseTo(500 / 0.7);
  });

  it("select the next span, starting with the first visible one", () => {
    expect(press(".")).toEqual({ kind: "select", span: 3 });
    expect(press(".", 3)).toEqual({ kind: "select", span: 4 });
    expect(press(",", 3)).toBeNull();
    expect(press("ArrowDown", 3)).toEqual({ kind: "select", span: 13 });
    expect(press("ArrowUp", 13)).toEqual({ kind: "select", span: 3 });
  });

  it("zoom to the selected span, and deselect it", () => {
    const action = press("Enter", 1);
    expect(action?.kind === "window" && action.window.fromNs < 100 && action.window.toNs > 300).toBe(true);
    expect(press("Enter")).toBeNull();
    expect(press("Escape", 1)).toEqual({ kind: "select", span: null });
  });

  it("go back, forward, to the step and to all steps; other keys do nothing", () => {
    expect(["[", "]", "0", "a", "x"].map((key) => press(key)?.kind ?? null)).toEqual([
      "back",
      "forward",
      "reset",
      "all",
      null,
    ]);
  });
});

describe("dropped folders", () => {
  const entry = (name: string, children: readonly FileSystemEntry[] | null = null) => {
    if (children === null) {
      return { name, isFile: true, file: (done: (file: File) => void) => done(new File([], name)) };
    }
    // As browsers do: in parts, then an empty one.
    const parts = [children.slice(0, 1), children.slice(1), []].filter(
      (part, at, all) => part.length > 0 || at === all.length - 1,
    );
    return {
      name,
      isFile: false,
      createReader: () => ({
        readEntries: (done: (part: readonly FileSystemEntry[]) => void) => done(parts.shift() ?? []),
      }),
    };
  };
  const make = (...parameters: Parameters<typeof entry>) => entry(...parameters) as unknown as FileSystemEntry;

  it("are listed with all files and their paths", async () => {
    const folder = make("run", [make("rank0.json"), make("deep", [make("rank1.json"), make("rank2.json")])]);
    const items = [folder, make("alone.json"), null].map((dropped) => ({ webkitGetAsEntry: () => dropped }));
    const files: readonly FileToSend[] = await listDroppedFiles(items as unknown as DataTransferItemList);
    expect(files.map(({ path }) => path)).toEqual([
      "run/rank0.json",
      "run/deep/rank1.json",
      "run/deep/rank2.json",
      "alone.json",
    ]);
    expect(files.map(({ file }) => file.name)).toEqual(["rank0.json", "rank1.json", "rank2.json", "alone.json"]);
  });
});
