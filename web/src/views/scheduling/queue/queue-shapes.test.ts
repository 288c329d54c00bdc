import { describe, expect, it } from "vitest";
import type { MeasureChange, NodePicture, StartForecast } from "../../../api/generated.ts";
import { sayStart } from "./ask-form.tsx";
import { layOut } from "./mini-picture.tsx";
import { stepsOf } from "./slip-waterfall.tsx";
import { sayDifference } from "./what-if-panel.tsx";
import { formatChange, makeAxis } from "./words.ts";

const HOUR_MS = 3_600_000;

describe("the axis of starts", () => {
  it("places now at 0, the last time at 1, and spreads what is near", () => {
    const axis = makeAxis(0, [100 * HOUR_MS]);
    expect(axis.place(0)).toBe(0);
    expect(axis.place(100 * HOUR_MS)).toBe(1);
    expect(axis.place(HOUR_MS)).toBeCloseTo(0.1);
    expect(axis.ticks.map(({ title }) => title)).toEqual(["1 h", "6 h", "1 d", "3 d"]);
  });

  it("has room for two hours where nothing is planned", () => {
    expect(makeAxis(0, []).endMs).toBe(2 * HOUR_MS);
  });
});

describe("slips", () => {
  it("begin where the last one ended and end at their sum", () => {
    expect(stepsOf([100, -30, 50])).toEqual([
      { from: 0, to: 100 },
      { from: 100, to: 70 },
      { from: 70, to: 120 },
    ]);
  });

  it("are told with their sign", () => {
    expect([7200, -900, 10].map(formatChange)).toEqual(["+2\u00a0h", "−15\u00a0min", "±0"]);
  });
});

describe("a difference", () => {
  const measure: MeasureChange = {
    name: "wait_s",
    title: "Mean wait",
    unit: "GPUs",
    baseline: 1,
    changed: 2,
    difference: 1,
    low: -0.5,
    high: 2.5,
    verdict: "unclear",
  };

  it("is told with its interval", () => {
    expect(sayDifference(measure)).toBe("+1.0 GPUs (−0.50 GPUs … +2.5 GPUs)");
  });

  it("is the same where nothing differs", () => {
    expect(sayDifference({ ...measure, difference: 0, low: 0, high: 0, verdict: "same" })).toBe("same");
  });
});

describe("the small picture", () => {
  const node = (baseline: NodePicture["baseline"], changed: NodePicture["changed"]): NodePicture => ({
    node: "n1",
    partition: "main",
    baseline,
    changed,
  });

  it("marks GPUs that another would hold, however they are ordered", () => {
    const cells = layOut([node(["a", "b", null], ["b", "c", null])], 4);
    expect(cells.map(({ kind }) => kind)).toEqual(["held", "other", "free"]);
  });

  it("marks nothing where nothing changes", () => {
    expect(layOut([node(["a", null], ["a", null])], 4).some(({ kind }) => kind === "other")).toBe(false);
  });
});

describe("a forecast in words", () => {
  const start: StartForecast = {
    partition: "main",
    machine_type: "A100",
    gpus: 8,
    hours: 4,
    ahead: 2,
    free_gpus: 0,
    is_at_once: true,
    wait_s: 0,
    likely_at: 0,
    intervals: [],
    plan_at: 0,
  };

  it("says at once where that is so", () => {
    expect(sayStart(start, 0)).toBe("At once");
  });

  it("says when, where no interval is known", () => {
    expect(sayStart({ ...start, is_at_once: false, wait_s: 7200 }, 0)).toBe("Likely in 2\u00a0h");
  });
});
