import { describe, expect, it } from "vitest";
import type { TraceReportAnswer, Verdict } from "../../api/generated.ts";
import type { MareyRow } from "../../api/marey.ts";
import type { TraceSteps } from "../../api/traces-client.ts";
import { findWorst, listCauses } from "./causes.ts";
import { fitScale, stretchScale } from "./flow/use-viewport.ts";
import { findMarkRows, markVerdict } from "./graph/highlight.ts";
import { findIdleStretches, toNsWindow, toShares } from "./overview.ts";
import { findCut, type Step, windowOf } from "./steps.ts";
import { describeRhythm } from "./verdict-cards.tsx";

const EXTENT = { fromNs: 0, toNs: 1000 };

function makeStep(step: number, fromNs: number, toNs: number, active = { fromNs, toNs }): Step {
  return { step, fromNs, toNs, active, durationNs: toNs - fromNs, computeNs: 0, waitNs: 0, transferNs: 0, idleNs: 0 };
}

function makeVerdict(changes: Partial<Verdict>): Verdict {
  return {
    kind: "slow_worker",
    rank: 1,
    stage: null,
    seconds_per_step: 1,
    is_hidden: false,
    sentence: "",
    evidence: {},
    spans: [{ span: 3, rank: 1, name: "gemm", step: 4, start_ns: 10, end_ns: 20 }],
    ...changes,
  };
}

describe("the overview", () => {
  it("has a window at the same place in shares and in nanoseconds", () => {
    const window = { fromNs: 200, toNs: 450 };
    expect(toNsWindow(toShares(window, EXTENT), EXTENT)).toEqual(window);
    expect(toShares({ fromNs: -20, toNs: 2000 }, EXTENT)).toEqual({ from: 0, to: 1 });
  });

  it("is idle where no row is busy for long", () => {
    const compute = Float64Array.from({ length: 200 }, (_, at) => (at % 100 >= 60 ? 0.5 : 0));
    compute[30] = 0.4;
    for (let bin = 140; bin < 150; bin += 1) compute[bin] = 0.4;
    const overview = { rows: ["stage 0", "stage 1"], bins: 100, compute, communication: new Float64Array(200) };
    expect(findIdleStretches(overview)).toEqual([
      { from: 0, to: 0.4 },
      { from: 0.5, to: 0.6 },
    ]);
  });
});

describe("a window of steps", () => {
  const late = makeStep(1, 0, 400, { fromNs: 300, toNs: 400 });
  const full = makeStep(2, 400, 500);

  it("is that of their activity, and names what it leaves out", () => {
    const window = windowOf([late], EXTENT);
    expect(window.fromNs).toBeCloseTo(298.5);
    expect(findCut([late, full], window, EXTENT)).toEqual({ beforeNs: 300, afterNs: 0 });
    expect(findCut([late, full], windowOf([full], EXTENT), EXTENT)).toEqual({ beforeNs: 0, afterNs: 500 });
  });

  it("leaves nothing out where it is not at the activity", () => {
    expect(findCut([late, full], { fromNs: 0, toNs: 400 }, EXTENT)).toBeNull();
    expect(findCut([full], { fromNs: 420, toNs: 430 }, EXTENT)).toBeNull();
  });
});

describe("a highlight", () => {
  const row = (depth: number, stage: number | null, rank: number | null, lane: string | null, isOpen = false) =>
    ({ depth, stage, rank, lane, isOpen }) as MareyRow;
  const rows = [
    row(0, 0, null, null),
    row(0, 1, null, null, true),
    row(1, 1, 2, null),
    row(1, 1, 3, null, true),
    row(2, 1, 3, "stream 7"),
    row(2, 1, 3, "stream 9"),
  ];
  const ranksOf = (stage: number | null) => (stage === 0 ? [0, 1] : [2, 3]);
  const mark = (rank: number, lane: string | null) => ({ rank, lane, startNs: 0, endNs: 1, color: "" });

  it("is on the innermost visible row of its rank and lane", () => {
    const marks = [mark(1, "stream 7"), mark(2, "stream 7"), mark(3, "stream 7"), mark(3, null), mark(9, null)];
    expect(findMarkRows(marks, rows, ranksOf)).toEqual([[0], [2], [4], [4, 5], []]);
  });

  it("shows where a cause acts, or its evidence where that is unknown", () => {
    const occurrences = { ranks: [1, 1], steps: [4, 6], seconds: [1, 2], start_ns: [10, 90], end_ns: [30, 95] };
    expect(markVerdict(makeVerdict({ occurrences }), "red").map(({ startNs, endNs }) => [startNs, endNs])).toEqual([
      [10, 30],
      [90, 95],
    ]);
    expect(markVerdict(makeVerdict({}), "red")).toEqual([
      { rank: 1, lane: null, startNs: 10, endNs: 20, color: "red" },
    ]);
  });
});

const STEPS = {
  count: 4,
  rank: Float64Array.of(0, 1, 0, 1),
  step: Float64Array.of(4, 4, 5, 5),
  waitNs: Float64Array.of(3e9, 0, 3e9, 0),
  transferNs: Float64Array.of(0, 0, 0, 0),
  idleNs: Float64Array.of(0, 1e9, 0, Number.NaN),
} as TraceSteps;

describe("causes by rank and step", () => {
  it("are the parts of the steps where no verdict says where it acts", () => {
    const { ranks, steps, causes } = listCauses({ verdicts: [makeVerdict({})] } as unknown as TraceReportAnswer, STEPS);
    expect([ranks, steps]).toEqual([
      [0, 1],
      [4, 5],
    ]);
    expect(causes.map(({ key }) => key)).toEqual(["waiting", "idle"]);
    expect(findWorst(causes, 0, 5)?.key).toBe("waiting");
    expect(findWorst(causes, 1, 4)?.key).toBe("idle");
    expect(findWorst(causes, 1, 5)).toBeNull();
  });

  it("are one row more for each verdict and kind of time", () => {
    const occurrences = { ranks: [1], steps: [5], seconds: [0.5], start_ns: [0], end_ns: [1] };
    const attribution = {
      kinds: ["compute", "pause"],
      ranks: [0, 1],
      steps: [4, 5],
      seconds: [
        [
          [1, 1],
          [1, 1],
        ],
        [
          [0, null],
          [0, 2],
        ],
      ],
    };
    const report = { verdicts: [makeVerdict({ occurrences })], attribution } as unknown as TraceReportAnswer;
    const { causes } = listCauses(report, STEPS);
    expect(causes.map(({ key, verdict }) => [key, verdict])).toEqual([
      ["verdict 0", 0],
      ["pause", null],
    ]);
    expect([...(causes[1]?.seconds ?? [])]).toEqual([["1 5", 2]]);
  });

  it("are said to be rare where they act in some steps only", () => {
    const rhythm = { kind: "intermittent", steps: [4, 6], step_share: 0.4, seconds_per_affected_step: 0.61 } as const;
    expect(describeRhythm(makeVerdict({ rhythm: rhythm as unknown as NonNullable<Verdict["rhythm"]> }), 5)).toBe(
      "; 610 ms in 2 of 5 steps".replaceAll(" ms", "\u00a0ms"),
    );
    expect(describeRhythm(makeVerdict({}), 5)).toBe("");
  });
});

describe("a flow", () => {
  const layout = (width: number, height: number) => ({ size: { width, height } }) as Parameters<typeof fitScale>[0];

  it("fits the screen first, and is not enlarged beyond reading", () => {
    expect(fitScale(layout(4000, 300), { width: 1000, height: 600 })).toBeCloseTo(0.25);
    expect(fitScale(layout(400, 1200), { width: 1000, height: 600 })).toBeCloseTo(0.5);
    expect(fitScale(layout(100, 100), { width: 1000, height: 600 })).toBeCloseTo(1.2);
    expect(fitScale(layout(100, 100), { width: 0, height: 0 })).toBe(1);
  });

  it("takes the free height where it is drawn small, but is never distorted where names are read", () => {
    expect(stretchScale(layout(8000, 400), { height: 600 }, 0.125)).toBeCloseTo(20 / 26);
    expect(stretchScale(layout(8000, 400), { height: 100 }, 0.125)).toBeCloseTo(0.23);
    expect(stretchScale(layout(8000, 4000), { height: 600 }, 0.15)).toBeCloseTo(0.15);
    expect(stretchScale(layout(1000, 100), { height: 600 }, 0.8)).toBe(0.8);
  });
});
