import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openView } from "./changes.ts";
import {
  ARRANGEMENTS,
  DISTANCES,
  type DiagnosticsPage,
  diagnose,
  INITIAL_DIAGNOSTICS,
  LINKAGES,
  PLOTS,
  resolveDistance,
  SIGNIFICANCES,
  toWindow,
} from "./diagnostics.ts";
import { INITIAL_SCREEN, parseScreen, serializeScreen, VIEW_NAMES } from "./screen.ts";

function parseLink(link: string) {
  const url = new URL(link, "http://page");
  return parseScreen(url.pathname, url.search, VIEW_NAMES);
}

const metrics = fc.stringMatching(/^[a-z0-9_]{1,20}$/);
const windows = fc
  .tuple(fc.integer({ min: 0, max: 2e9 }), fc.integer({ min: 1, max: 1e6 }))
  .map(([from, length]) => ({ fromMs: from * 1000, toMs: (from + length) * 1000 }));
const numbers = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e12, max: 1e12 });

const pages: fc.Arbitrary<DiagnosticsPage> = fc.record({
  workload: fc.option(fc.string({ unit: "grapheme", minLength: 1 })),
  metric: fc.option(metrics),
  plot: fc.constantFrom(...PLOTS),
  arrangement: fc.constantFrom(...ARRANGEMENTS),
  distance: fc.constantFrom(...DISTANCES),
  lag: fc.integer({ min: 0, max: 60 }),
  linkage: fc.constantFrom(...LINKAGES),
  count: fc.option(fc.integer({ min: 1, max: 64 })),
  units: fc.uniqueArray(fc.integer({ min: 0, max: 7 })).map((all) => all.sort().map((index) => `gpu-01:${index}`)),
  window: fc.option(windows),
  lines: fc.uniqueArray(metrics, { maxLength: 8 }),
  x: fc.option(metrics),
  y: fc.option(metrics),
  fit: fc.constantFrom("robust" as const, "classic" as const),
  significance: fc.constantFrom(...SIGNIFICANCES),
  brush: fc.option(
    fc
      .tuple(numbers, numbers, numbers, numbers)
      .filter(([a, b, c, d]) => a < b && c < d && ![a, b, c, d].some((value) => Object.is(value, -0)))
      .map(([xFrom, xTo, yFrom, yTo]) => ({ xFrom, xTo, yFrom, yTo })),
  ),
  compared: fc.option(
    fc.oneof(
      fc.string({ minLength: 1 }).map((workload) => ({ kind: "workload" as const, workload })),
      windows.map((window) => ({ kind: "window" as const, window })),
    ),
  ),
});

describe("the diagnostics page in a link", () => {
  it("comes back as it was written", () => {
    fc.assert(
      fc.property(pages, (diagnostics) => {
        const screen = { ...INITIAL_SCREEN, view: "diagnostics" as const, diagnostics };
        expect(parseLink(serializeScreen(screen))).toEqual({ screen, notices: [] });
      }),
    );
  });

  it("is short where only a workload was chosen", () => {
    const screen = { ...INITIAL_SCREEN, view: "diagnostics" as const };
    const diagnostics = { ...INITIAL_DIAGNOSTICS, workload: "slurm:48213" };
    expect(serializeScreen({ ...screen, diagnostics })).toBe("/diagnostics?workload=slurm:48213");
  });

  it.each([
    "workload=",
    "metric=No%20metric",
    "plot=pie",
    "arrange=color",
    "distance=far",
    "lag=-1",
    "lag=1e1",
    "linkage=chain",
    "clusters=0",
    "clusters=many",
    "window=2026-11-15T10:00:00Z",
    "window=2026-11-15T10:00:00Z~2026-11-15T09:00:00Z",
    "lines=A,B",
    "outside=2",
    "brush=1~0~0~1",
    "brush=1~2~3",
    "brush=NaN~1~0~1",
    "compare=workload:",
    "compare=window:yesterday",
    "fit=tight",
  ])("says so where %s means nothing", (query) => {
    const { screen, notices } = parseLink(`/diagnostics?${query}`);
    expect(screen.diagnostics).toEqual(INITIAL_DIAGNOSTICS);
    expect(notices).toHaveLength(1);
  });
});

describe("opening the view", () => {
  it("takes the selected workload along", () => {
    const screen = { ...INITIAL_SCREEN, selection: { kind: "workload" as const, key: "slurm:7" } };
    expect(openView("diagnostics")(screen).diagnostics.workload).toBe("slurm:7");
  });

  it("keeps what was looked at where nothing else is selected", () => {
    const screen = diagnose("slurm:7")(INITIAL_SCREEN);
    const zoomed = { ...screen, diagnostics: { ...screen.diagnostics, plot: "timeline" as const } };
    expect(openView("diagnostics")(openView("overview")(zoomed)).diagnostics).toEqual(zoomed.diagnostics);
  });
});

describe("a window", () => {
  it("is whole seconds, ten at least, from its earlier end", () => {
    expect(toWindow(20_500, 1_900)).toEqual({ fromMs: 1_000, toMs: 21_000 });
    expect(toWindow(5_000, 5_000)).toEqual({ fromMs: 5_000, toMs: 15_000 });
  });
});

describe("the distance", () => {
  it("is that of what is drawn, or the reader's", () => {
    expect(resolveDistance({ distance: "auto", plot: "timeline" })).toBe("euclidean");
    expect(resolveDistance({ distance: "auto", plot: "table" })).toBe("histogram");
    expect(resolveDistance({ distance: "correlation", plot: "histogram" })).toBe("correlation");
  });
});
