import { describe, expect, it } from "vitest";
import { findOrigin, findShownSteps, findTypical, listSteps, windowOf } from "./steps.ts";
import { type FileToSend, nameTrace } from "./traces/files.ts";

const table = {
  count: 4,
  step: Float64Array.of(4, 4, 5, 5),
  rank: Float64Array.of(0, 1, 0, 1),
  startNs: Float64Array.of(0, 10, 100, 90),
  durationNs: Float64Array.of(90, 80, 60, 90),
  computeNs: Float64Array.of(40, 60, 30, 30),
  waitNs: Float64Array.of(10, 0, Number.NaN, 0),
  transferNs: Float64Array.of(10, 0, 0, 0),
  idleNs: Float64Array.of(30, 20, 30, 60),
  activeStartNs: Float64Array.of(0, 0, 150, 150),
  activeEndNs: Float64Array.of(90, 90, 180, 180),
};
const EXTENT = { fromNs: 0, toNs: 180 };

describe("steps", () => {
  const steps = listSteps(table);

  it("span all ranks and are means over ranks", () => {
    expect(steps.map(({ step, fromNs, toNs, computeNs }) => [step, fromNs, toNs, computeNs])).toEqual([
      [4, 0, 90, 50],
      [5, 90, 180, 30],
    ]);
  });

  it("are typical where their duration is the median", () => {
    expect(findTypical(steps)?.step).toBe(5);
    expect(findTypical([])).toBeNull();
  });

  it("are visible where their middle is, or where the window lies inside one", () => {
    expect(findShownSteps(steps, { fromNs: -1, toNs: 181 })).toEqual([0, 1]);
    expect(findShownSteps(steps, { fromNs: 100, toNs: 104 })).toEqual([1, 1]);
    expect(findOrigin(steps, { fromNs: 100, toNs: 104 }, EXTENT)).toBe(90);
    expect(windowOf([], EXTENT).toNs).toBeGreaterThan(180);
  });
});

describe("the name of a trace", () => {
  const files = (...paths: string[]): readonly FileToSend[] =>
    paths.map((path) => ({ path, file: new File([], path.split("/").at(-1) ?? "") }));

  it("is the folder, or the common prefix of its files", () => {
    expect(nameTrace(files("run3/rank0.json.gz", "run3/rank1.json.gz"))).toBe("run3");
    expect(nameTrace(files("pipe_rank0.json.gz", "pipe_rank1.json.gz"))).toBe("pipe");
    expect(nameTrace(files("timeline.json"))).toBe("timeline");
    expect(nameTrace(files("0.json", "1.json"))).toBe("0");
    expect(nameTrace([])).toBe("trace");
  });
});
