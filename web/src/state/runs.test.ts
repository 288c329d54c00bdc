import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  closeRun,
  forgetRun,
  INITIAL_RUNS,
  openRun,
  RUN_AXES,
  RUN_BANDS,
  RUN_DRAWINGS,
  RUN_GROUPINGS,
  type RunsPage,
  toggleRuns,
} from "./runs.ts";
import { INITIAL_SCREEN, parseScreen, serializeScreen, VIEW_NAMES } from "./screen.ts";

const runIds = fc.uniqueArray(fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,19}$/), { maxLength: 8 });

const pages: fc.Arbitrary<RunsPage> = fc.record({
  runs: fc.option(runIds),
  open: fc.option(fc.constant("r-1")),
  text: fc.string(),
  drawing: fc.constantFrom(...RUN_DRAWINGS),
  metrics: fc.uniqueArray(fc.constantFrom("loss", "power_watts", "train/accuracy (top 5)")),
  axis: fc.constantFrom(...RUN_AXES),
  phase: fc.string(),
  grouping: fc.constantFrom(...RUN_GROUPINGS),
  band: fc.constantFrom(...RUN_BANDS),
  smoothing: fc.constantFrom(0, 0.5, 0.99),
  warmUp: fc.constantFrom(0, 12.5, 400),
  outliers: fc.constantFrom(0, 1, 5),
  x: fc.string(),
  y: fc.string(),
});

function readLink(link: string) {
  const url = new URL(link, "http://page");
  return parseScreen(url.pathname, url.search, VIEW_NAMES);
}

describe("a link to runs", () => {
  it("says the whole page and nothing else", () => {
    fc.assert(
      fc.property(pages, (runs) => {
        const screen = { ...INITIAL_SCREEN, view: "runs" as const, runs };
        expect(readLink(serializeScreen(screen))).toEqual({ screen, notices: [] });
      }),
    );
  });

  it("reports what is invalid in it", () => {
    const { screen, notices } = readLink("/runs?chart=pie&smooth=2&run=a%20b");
    expect(screen.runs).toEqual(INITIAL_RUNS);
    expect(notices).toHaveLength(3);
  });
});

describe("choosing runs", () => {
  it("adds all of a group, then takes all of it away", () => {
    const toggled = toggleRuns(["a", "b"], ["b"])(INITIAL_SCREEN);
    expect(toggled.runs.runs).toEqual(["a", "b"]);
    expect(toggleRuns(["a", "b"], toggled.runs.runs ?? [])(toggled).runs.runs).toEqual([]);
  });

  it("selects the workload of a run that is opened, and lets go of it when it is closed", () => {
    const opened = openRun({ run: "r-1", workload: "run:r-1" })(INITIAL_SCREEN);
    expect([opened.runs.runs, opened.runs.open, opened.selection?.key]).toEqual([null, "r-1", "run:r-1"]);
    const closed = closeRun("run:r-1")(opened);
    expect([closed.runs.open, closed.selection]).toEqual([null, null]);
    const other = closeRun("run:r-1")({ ...opened, selection: { kind: "workload", key: "slurm:1" } });
    expect(other.selection?.key).toBe("slurm:1");
  });

  it("neither open nor chosen after a run was deleted", () => {
    const run = { run: "r-1", workload: "run:r-1" };
    const opened = openRun(run)(toggleRuns(["r-1", "r-2"], [])(INITIAL_SCREEN));
    const screen = forgetRun(run)(opened);
    expect([screen.runs.open, screen.runs.runs, screen.selection]).toEqual([null, ["r-2"], null]);
    expect(forgetRun(run)(INITIAL_SCREEN).runs.runs).toBe(INITIAL_RUNS.runs);
  });
});
