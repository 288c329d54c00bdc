import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BUILTIN_VIEWS } from "../layout/builtin-views.ts";
import { DEFAULT_VIEW } from "../layout/grammar.ts";
import { ACCESS_TABLES } from "./access.ts";
import { ranges, wheres } from "./arbitrary-where.ts";
import { ATTRIBUTES } from "./attributes.ts";
import {
  clearFilters,
  colorBy,
  openPicture,
  select,
  setColors,
  setFilter,
  showTable,
  sortBy,
  toggleFilter,
} from "./changes.ts";
import { type ColorSettings, NAME_SCHEMES, NUMBER_SCHEMES, SCALE_KINDS } from "./color.ts";
import { INITIAL_DIAGNOSTICS } from "./diagnostics.ts";
import { INITIAL_PARALLEL } from "./parallel.ts";
import { PICTURE_NAMES } from "./picture.ts";
import { INITIAL_RUNS } from "./runs.ts";
import { INITIAL_SCHEDULING } from "./scheduling.ts";
import {
  INITIAL_SCREEN,
  parseScreen,
  type Screen,
  serializeScreen,
  TABLE_NAMES,
  TABLES,
  VIEW_NAMES,
} from "./screen.ts";
import type { Selection } from "./selection.ts";
import { USAGE_PARTS } from "./usage.ts";
import { INITIAL_RULES_PAGE } from "./violations.ts";
import type { PictureWindow } from "./window.ts";

function parseLink(link: string) {
  const url = new URL(link, "http://page");
  return parseScreen(url.pathname, url.search, VIEW_NAMES);
}

const scales = fc.oneof(
  fc.record({ kind: fc.constantFrom(...SCALE_KINDS), bins: fc.constant(5) }),
  fc.record({ kind: fc.constant("quantize" as const), bins: fc.integer({ min: 2, max: 12 }) }),
);

const colors: fc.Arbitrary<ColorSettings> = fc
  .record({
    scheme: fc.option(fc.constantFrom(...NUMBER_SCHEMES, ...NAME_SCHEMES)),
    isReversed: fc.boolean(),
    ends: fc.option(ranges),
    scale: scales,
    isRemapped: fc.boolean(),
  })
  .map(({ ends, ...rest }) => ({ ...rest, min: ends?.min ?? null, max: ends?.max ?? null }));

const selections: fc.Arbitrary<Selection> = fc.oneof(
  fc.record({
    kind: fc.constantFrom("workload", "unit", "node"),
    key: fc.string({ minLength: 1, unit: "grapheme" }),
  }),
  fc.constantFrom(
    { kind: "units", key: "gpu-001..016:0-7,gpu-020:0-3.6,slurm:9#0" },
    { kind: "group", key: "gpus/project=nlp-core/user" },
  ),
);

const windows: fc.Arbitrary<PictureWindow> = fc.record({
  x: fc.integer({ min: -20_000, max: 20_000 }).map((value) => value / 1e4),
  y: fc.integer({ min: 0, max: 10_000 }).map((value) => value / 1e4),
  width: fc.integer({ min: 1, max: 1e6 }).map((value) => value / 100),
  height: fc.integer({ min: 1, max: 1e6 }).map((value) => value / 100),
  space: fc.record({ width: fc.integer({ min: 1, max: 9999 }), height: fc.integer({ min: 1, max: 9999 }) }),
  group: fc.array(fc.string({ minLength: 1, unit: "grapheme" }), { maxLength: 4 }),
});

const screens: fc.Arbitrary<Screen> = fc.constantFrom(...TABLE_NAMES).chain((table) =>
  fc.record({
    view: fc.constantFrom(...VIEW_NAMES),
    table: fc.constant(table),
    picture: fc.option(fc.constantFrom(...PICTURE_NAMES, "shared:night-shift", "mine:a_1")),
    layout: fc.option(fc.constantFrom(DEFAULT_VIEW, ...BUILTIN_VIEWS.map(({ view }) => view))),
    window: fc.option(windows),
    color: fc.option(fc.constantFrom(...ATTRIBUTES.map(({ name }) => name))),
    colors,
    sort: fc.option(fc.record({ column: fc.constantFrom(...TABLES[table].columns), descending: fc.boolean() })),
    text: fc.string(),
    where: wheres,
    selection: fc.option(selections),
    within: fc.option(selections),
    hiddenRules: fc.constantFrom([], ["idle-corner"], ["a", "my_rule-2"]),
    rulesPage: fc.constant(INITIAL_RULES_PAGE),
    diagnostics: fc.constant(INITIAL_DIAGNOSTICS),
    parallel: fc.constant(INITIAL_PARALLEL),
    scheduling: fc.constant(INITIAL_SCHEDULING),
    runs: fc.constant(INITIAL_RUNS),
    usage: fc.record({
      period: fc.constantFrom("", "2026-10", "2026-W42", "2026-01..2026-03"),
      part: fc.constantFrom(...USAGE_PARTS),
      project: fc.constantFrom("", "nlp", "a&b = c"),
      user: fc.constantFrom("", "ada"),
    }),
    job: fc.constant(null),
    access: fc.constantFrom(...ACCESS_TABLES),
    at: fc.option(fc.integer({ min: 0, max: 60_000_000 }).map((minute) => minute * 60_000)),
  }),
);

describe("a link", () => {
  it("says the whole screen and nothing else", () => {
    fc.assert(
      fc.property(screens, (screen) => {
        expect(parseLink(serializeScreen(screen))).toEqual({ screen, notices: [] });
      }),
    );
  });

  it("names a job by cluster and id", () => {
    const job = { cluster: "della 1", job: "4711+1" };
    const link = serializeScreen({ ...INITIAL_SCREEN, view: "job", job });
    expect(link).toBe("/job/della%201/4711%2B1");
    expect(parseLink(link)).toEqual({ screen: { ...INITIAL_SCREEN, view: "job", job }, notices: [] });
    expect(parseLink("/job/della/4711_3").screen.job).toEqual({ cluster: "della", job: "4711_3" });
    expect(parseLink("/job/only-a-cluster").screen.view).toBe("overview");
    expect(parseLink("/job/a/%E0%A4%A").screen.view).toBe("overview");
  });

  it("leaves out what is as always", () => {
    expect(serializeScreen(INITIAL_SCREEN)).toBe("/");
    const screen = select({ kind: "unit", key: "gpu-017:3" })(showTable("units")(INITIAL_SCREEN));
    expect(serializeScreen(screen)).toBe("/?table=units&select=unit:gpu-017:3");
  });

  it("never breaks the page, whatever it says", () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.tuple(fc.string(), fc.string())), (path, pairs) => {
        const { screen } = parseScreen(path, `?${new URLSearchParams(pairs)}`, VIEW_NAMES);
        expect(parseLink(serializeScreen(screen)).screen).toEqual(screen);
      }),
    );
  });

  it("may hold keys that mean nothing here", () => {
    expect(parseLink("/?utm_source=chat&place=x")).toEqual({ screen: INITIAL_SCREEN, notices: [] });
  });

  it("reports what was ignored", () => {
    const { screen, notices } = parseLink(
      "/nowhere?table=cats&sort=zzz&state=asleep&select=user:x&picture=monet&color=mood",
    );
    expect(screen).toEqual(INITIAL_SCREEN);
    expect(notices).toHaveLength(7);
    expect(notices.join("\n")).toMatch(/table=cats[\s\S]*nowhere[\s\S]*monet[\s\S]*mood[\s\S]*zzz[\s\S]*asleep/);
  });

  it("of before there were conditions means the same", () => {
    const old = parseLink("/?table=nodes&state=down&partition=v100&user=ada&user=bob");
    const now = parseLink("/?table=nodes&where=node_state:down&where=partition:v100&where=user:ada,bob");
    expect(old).toEqual(now);
    expect(parseLink("/?state=free").screen.where).toEqual(parseLink("/?where=unit_state:free").screen.where);
  });

  it("says what of its colors and conditions means nothing", () => {
    const { screen, notices } = parseLink(
      "/?color_scale=cubic&color_domain=9..1&color_scheme=rainbow&where=mood:good&where=user~",
    );
    expect(screen).toEqual(INITIAL_SCREEN);
    expect(notices).toHaveLength(5);
  });

  it("from a newer version says so", () => {
    expect(parseLink("/?v=2").notices.join()).toContain("newer");
  });

  it("to a view that does not exist yet leads to the overview", () => {
    const { screen, notices } = parseScreen("/rules", "", ["overview"]);
    expect(screen.view).toBe("overview");
    expect(notices).toHaveLength(1);
  });
});

describe("changes", () => {
  it("to another table give up only the order it does not know", () => {
    const before = [
      setFilter("state", ["running"]),
      setFilter("user", ["ada"]),
      sortBy({ column: "waited", descending: true }),
    ].reduce((screen, change) => change(screen), showTable("workloads")(INITIAL_SCREEN));
    const after = showTable("units")(before);
    expect(after.sort).toBeNull();
    expect(after.where).toBe(before.where);
    expect(serializeScreen(after)).toBe("/?table=units&where=workload_state:running&where=user:ada");
    expect(showTable("nodes")(sortBy({ column: "util", descending: true })(before)).sort?.column).toBe("util");
  });

  it("to another picture show it in its own colors", () => {
    const colored = colorBy("power_watts")(INITIAL_SCREEN);
    expect(serializeScreen(colored)).toBe("/?color=power_watts");
    expect(serializeScreen(openPicture("fragmentation-by-host", DEFAULT_VIEW, {})(colored))).toBe(
      "/?picture=fragmentation-by-host",
    );
  });

  it("to another color forget its ends and scale and keep the scheme", () => {
    const set = setColors({ min: 0, max: 10, scheme: "cividis", scale: { kind: "log", bins: 5 } })(INITIAL_SCREEN);
    expect(serializeScreen(set)).toBe("/?color_scheme=cividis&color_domain=0..10&color_scale=log");
    expect(serializeScreen(colorBy("power_watts:p95")(set))).toBe("/?color=power_watts:p95&color_scheme=cividis");
  });

  it("toggle a filter on and off", () => {
    const on = toggleFilter("user", "ada")(INITIAL_SCREEN);
    expect(serializeScreen(on)).toBe("/?where=user:ada");
    expect(toggleFilter("user", "ada")(on)).toEqual(INITIAL_SCREEN);
    expect(clearFilters(on)).toEqual(INITIAL_SCREEN);
  });
});
