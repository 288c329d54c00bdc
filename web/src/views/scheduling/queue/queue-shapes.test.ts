import { describe, expect, it } from "vitest";
import type { HeldSpans, MeasureChange, StartForecast, WhatIfNode } from "../../../api/generated.ts";
import { HOUR_MS } from "../../../base/durations.ts";
import { CLOSED, FREE, findChangedHolders, layOutNodes, placeSpans, readMoment } from "./course-layout.ts";
import { describeForecast } from "./forecast-form.tsx";
import { toSteps } from "./slip-waterfall.tsx";
import { formatDifference } from "./what-if-panel.tsx";
import { fitTicks, formatChange, makeAxis } from "./words.ts";

describe("the axis of starts", () => {
  it("places now at 0, the last time at 1, and spreads near times", () => {
    const axis = makeAxis(0, [100 * HOUR_MS]);
    expect(axis.place(0)).toBe(0);
    expect(axis.place(100 * HOUR_MS)).toBe(1);
    expect(axis.place(HOUR_MS)).toBeCloseTo(0.1);
    expect(axis.ticks.map(({ title }) => title)).toEqual(["1 h", "6 h", "1 d", "3 d"]);
  });

  it("shows only ticks that have room", () => {
    const titles = (widthPx: number) => fitTicks(makeAxis(0, [40 * HOUR_MS]), widthPx).map(({ title }) => title);
    expect(titles(300)).toEqual(["1 h", "6 h", "1 d"]);
    expect(titles(150)).toEqual(["6 h", "1 d"]);
    expect(titles(0)).toEqual([]);
  });

  it("covers two hours where nothing is planned", () => {
    expect(makeAxis(0, []).endMs).toBe(2 * HOUR_MS);
  });
});

describe("slips", () => {
  it("begin where the previous one ended and end at their sum", () => {
    expect(toSteps([100, -30, 50])).toEqual([
      { from: 0, to: 100 },
      { from: 100, to: 70 },
      { from: 70, to: 120 },
    ]);
  });

  it("are formatted with their sign", () => {
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

  it("is formatted with its interval", () => {
    expect(formatDifference(measure)).toBe("+1.0 GPUs (−0.50 GPUs … +2.5 GPUs)");
  });

  it("is the same where nothing differs", () => {
    expect(formatDifference({ ...measure, difference: 0, low: 0, high: 0, verdict: "same" })).toBe("same");
  });
});

describe("the course of a what-if", () => {
  const node = (name: string, changes: Partial<WhatIfNode> = {}): WhatIfNode => ({
    node: name,
    partition: "main",
    gpus: 4,
    is_added: false,
    is_open: true,
    will_be_open: true,
    ...changes,
  });
  const spans: HeldSpans = {
    node: [0, 0, 0],
    holder: [0, 1, 2],
    gpus: [2, 1, 3],
    from_at: [0, 0, 100],
    to_at: [100, 300, 200],
  };
  const nodes = [node("a"), node("b", { is_added: true }), node("c", { will_be_open: false })];
  const course = { from_at: 0, until_at: 300, nodes, left_out: 0, holders: [], baseline: spans, changed: spans };

  it("gives each workload the lowest GPUs that are free at its start", () => {
    expect(placeSpans(spans, nodes).map(({ slots }) => slots)).toEqual([[0, 1], [2], [0, 1, 3]]);
  });

  it("finds the holder of each GPU at a moment, and free GPUs on partly held nodes", () => {
    const placed = placeSpans(spans, nodes);
    const baseline = readMoment(course, placed, false, 50);
    expect(baseline.holders).toEqual([[0, 0, 1, FREE], [], [FREE, FREE, FREE, FREE]]);
    expect([baseline.free, baseline.onPartlyHeldNodes]).toEqual([5, 1]);
    const changed = readMoment(course, placed, true, 250);
    expect(changed.holders[0]).toEqual([FREE, FREE, 1, FREE]);
    expect(changed.holders[1]).toHaveLength(4);
    expect(changed.holders[2]?.[0]).toBe(CLOSED);
  });

  it("marks GPUs with another holder, in any order", () => {
    expect(findChangedHolders([5, 6, FREE], [6, 7, FREE])).toEqual([false, true, false]);
    expect(findChangedHolders([], [FREE])).toEqual([true]);
  });

  it("lays out nodes by partition, in rows that fit", () => {
    const layout = layOutNodes([...nodes, node("d", { partition: "other" })], 36);
    expect(layout.labels.map(({ text }) => text)).toEqual(["main", "other"]);
    expect(new Set(layout.boxes.map(({ x, y }) => `${x} ${y}`)).size).toBe(4);
    expect(layout.boxes[2]?.y).toBeGreaterThan(layout.boxes[1]?.y ?? 0);
    expect(layout.height).toBeGreaterThan(layout.boxes[3]?.y ?? 0);
  });
});

describe("a forecast", () => {
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
    why: {
      predicted_by: "simulation",
      alone_at: 0,
      uncertain: "nothing",
      run_times_ratio: null,
      says_little: false,
      text: "",
    },
  };

  it("is immediate where GPUs are free", () => {
    expect(describeForecast(start, 0)).toBe("Immediately");
  });

  it("shows the wait where there is no interval", () => {
    expect(describeForecast({ ...start, is_at_once: false, wait_s: 7200 }, 0)).toBe("Likely in 2\u00a0h");
  });
});
