import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BUILTIN_VIEWS } from "../layout/builtin-views.ts";
import { DEFAULT_VIEW } from "../layout/grammar.ts";
import { clearFilters, colorBy, openPicture, select, setFilter, showTable, sortBy, toggleFilter } from "./changes.ts";
import { PICTURE_NAMES } from "./picture.ts";
import {
  COLOR_NAMES,
  INITIAL_SCREEN,
  parseScreen,
  perFilter,
  type Screen,
  SELECTION_KINDS,
  serializeScreen,
  TABLE_NAMES,
  TABLES,
  VIEW_NAMES,
} from "./screen.ts";

function parseLink(link: string) {
  const url = new URL(link, "http://page");
  return parseScreen(url.pathname, url.search, VIEW_NAMES);
}

const names = fc.uniqueArray(fc.string({ minLength: 1 })).map((list) => list.toSorted());

const screens: fc.Arbitrary<Screen> = fc.constantFrom(...TABLE_NAMES).chain((table) =>
  fc.record({
    view: fc.constantFrom(...VIEW_NAMES),
    table: fc.constant(table),
    picture: fc.option(fc.constantFrom(...PICTURE_NAMES, "shared:night-shift", "mine:a_1")),
    layout: fc.option(fc.constantFrom(DEFAULT_VIEW, ...BUILTIN_VIEWS.map(({ view }) => view))),
    color: fc.option(fc.constantFrom(...COLOR_NAMES)),
    sort: fc.option(fc.record({ column: fc.constantFrom(...TABLES[table].columns), descending: fc.boolean() })),
    text: fc.string(),
    filters: fc.record({
      ...perFilter(() => names),
      state: fc.uniqueArray(fc.constantFrom<string>(...TABLES[table].states)).map((list) => list.toSorted()),
    }),
    selection: fc.option(
      fc.record({ kind: fc.constantFrom(...SELECTION_KINDS), key: fc.string({ minLength: 1, unit: "grapheme" }) }),
    ),
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

  it("is told what was left out", () => {
    const { screen, notices } = parseLink(
      "/nowhere?table=cats&sort=zzz&state=asleep&select=user:x&picture=monet&color=mood",
    );
    expect(screen).toEqual(INITIAL_SCREEN);
    expect(notices).toHaveLength(7);
    expect(notices.join("\n")).toMatch(/table=cats[\s\S]*nowhere[\s\S]*monet[\s\S]*mood[\s\S]*zzz[\s\S]*asleep/);
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
  it("to another table give up only what it does not know", () => {
    const before = [
      setFilter("state", ["running", "allocated"]),
      setFilter("user", ["ada"]),
      sortBy({ column: "waited", descending: true }),
    ].reduce((screen, change) => change(screen), showTable("workloads")(INITIAL_SCREEN));
    const after = showTable("units")(before);
    expect(after.sort).toBeNull();
    expect(after.filters).toEqual({ ...INITIAL_SCREEN.filters, state: ["allocated"], user: ["ada"] });
    expect(showTable("nodes")(sortBy({ column: "util", descending: true })(before)).sort?.column).toBe("util");
  });

  it("to another picture show it in its own colors", () => {
    const colored = colorBy("power_watts")(INITIAL_SCREEN);
    expect(serializeScreen(colored)).toBe("/?color=power_watts");
    expect(serializeScreen(openPicture("fragmentation-by-host", DEFAULT_VIEW, {})(colored))).toBe(
      "/?picture=fragmentation-by-host",
    );
  });

  it("toggle a filter on and off", () => {
    const on = toggleFilter("user", "ada")(INITIAL_SCREEN);
    expect(on.filters.user).toEqual(["ada"]);
    expect(toggleFilter("user", "ada")(on)).toEqual(INITIAL_SCREEN);
    expect(clearFilters(on)).toEqual(INITIAL_SCREEN);
  });
});
