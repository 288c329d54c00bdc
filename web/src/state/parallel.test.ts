import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  CURVES,
  changeParallel,
  DRAWINGS,
  INITIAL_PARALLEL,
  LEVELS,
  MERGES,
  openTrace,
  PANES,
  type ParallelPage,
  SPAN_CLASSES,
  SPAN_COLORS,
  toggleRow,
} from "./parallel.ts";
import { INITIAL_SCREEN, parseScreen, serializeScreen, VIEW_NAMES } from "./screen.ts";

function parseLink(link: string) {
  const url = new URL(link, "http://page");
  return parseScreen(url.pathname, url.search, VIEW_NAMES);
}

const traces = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,30}$/);
const pages: fc.Arbitrary<ParallelPage> = fc.record({
  trace: fc.option(traces),
  window: fc.option(
    fc
      .tuple(fc.integer({ min: -1e9, max: 1e13 }), fc.integer({ min: 1, max: 1e12 }))
      .map(([fromNs, length]) => ({ fromNs, toNs: fromNs + length })),
  ),
  level: fc.constantFrom(...LEVELS),
  open: fc.uniqueArray(
    fc.oneof(
      fc.nat(99).map(String),
      fc.nat(99).map((rank) => `r${rank}`),
    ),
  ),
  color: fc.constantFrom(...SPAN_COLORS),
  classes: fc
    .uniqueArray(fc.constantFrom(...SPAN_CLASSES), { minLength: 1 })
    .map((some) => SPAN_CLASSES.filter((spanClass) => some.includes(spanClass))),
  merge: fc.constantFrom(...MERGES),
  curve: fc.option(fc.constantFrom(...CURVES)),
  span: fc.option(fc.nat()),
  text: fc.string(),
  drawing: fc.constantFrom(...DRAWINGS),
  pane: fc.constantFrom(...PANES),
  flow: fc.option(fc.uniqueArray(fc.tuple(fc.constantFrom("", "*"), fc.nat(9999)).map(([star, at]) => `${star}${at}`))),
  nodes: fc.uniqueArray(fc.nat(2000), { maxLength: 20 }),
  verdict: fc.option(fc.nat(30)),
  compared: fc.option(traces),
});

describe("the parallel page in a link", () => {
  it("comes back as it was written", () => {
    fc.assert(
      fc.property(pages, (parallel) => {
        const screen = { ...INITIAL_SCREEN, view: "parallel" as const, parallel };
        expect(parseLink(serializeScreen(screen))).toEqual({ screen, notices: [] });
      }),
    );
  });

  it("is as short as what is unusual about it", () => {
    const screen = openTrace("pipe-4f2a91")(INITIAL_SCREEN);
    expect(serializeScreen(screen)).toBe("/parallel?trace=pipe-4f2a91");
    const zoomed = changeParallel({ window: { fromNs: 10.4, toNs: 2e6 }, open: ["0", "r3"] })(screen);
    expect(serializeScreen(zoomed)).toBe("/parallel?trace=pipe-4f2a91&ns=10~2000000&open=0,r3");
  });

  it("says what of it makes no sense and goes on", () => {
    const { screen, notices } = parseLink("/parallel?trace=a/b&ns=9~3&level=gpu&open=x&at_span=-1&show=nothing");
    expect(screen.parallel).toEqual(INITIAL_PARALLEL);
    expect(notices).toHaveLength(6);
  });
});

describe("changes of the parallel page", () => {
  it("look at another trace afresh, but draw it the same way", () => {
    const before = changeParallel({ trace: "a", span: 3, window: { fromNs: 0, toNs: 5 }, color: "wait" })(
      INITIAL_SCREEN,
    );
    expect(openTrace("b")(before).parallel).toEqual({ ...INITIAL_PARALLEL, trace: "b", color: "wait" });
  });

  it("open a row and close it again", () => {
    const opened = toggleRow("r3")(toggleRow("0")(INITIAL_SCREEN));
    expect(opened.parallel.open).toEqual(["0", "r3"]);
    expect(toggleRow("0")(opened).parallel.open).toEqual(["r3"]);
  });
});
