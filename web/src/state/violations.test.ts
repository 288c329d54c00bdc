import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { selectViolation } from "./changes.ts";
import { INITIAL_SCREEN, parseScreen, serializeScreen, VIEW_NAMES } from "./screen.ts";
import {
  INITIAL_RULES_PAGE,
  isNarrowed,
  type RulesPage,
  SEVERITIES,
  SPANS,
  toggled,
  toTimeRange,
  VIOLATION_COLUMNS,
  VIOLATION_STATES,
} from "./violations.ts";

function parseLink(link: string) {
  const url = new URL(link, "http://page");
  return parseScreen(url.pathname, url.search, VIEW_NAMES);
}

const keys = fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,20}$/);
const names = fc.uniqueArray(fc.string({ unit: "grapheme" }), { maxLength: 5 });

const pages: fc.Arbitrary<RulesPage> = fc.record({
  shows: fc.constantFrom("violations" as const, "rules" as const),
  span: fc.constantFrom(...SPANS),
  range: fc.option(
    fc
      .tuple(fc.integer({ min: 0, max: 3e7 }), fc.integer({ min: 1, max: 1e5 }))
      .map(([from, length]) => ({ fromMs: from * 60_000, toMs: (from + length) * 60_000 })),
  ),
  rules: fc.uniqueArray(keys, { maxLength: 4 }),
  severities: fc.subarray([...SEVERITIES]),
  users: names,
  projects: names,
  state: fc.constantFrom(...VIOLATION_STATES),
  text: fc.string({ unit: "grapheme" }),
  sort: fc.record({ column: fc.constantFrom(...VIOLATION_COLUMNS), descending: fc.boolean() }),
  rule: fc.option(keys),
});

describe("the rules page in a link", () => {
  it("comes back as it was written", () => {
    fc.assert(
      fc.property(pages, (rulesPage) => {
        const screen = { ...INITIAL_SCREEN, view: "rules" as const, rulesPage };
        expect(parseLink(serializeScreen(screen))).toEqual({ screen, notices: [] });
      }),
    );
  });

  it("is short where nothing was chosen", () => {
    expect(serializeScreen({ ...INITIAL_SCREEN, view: "rules" })).toBe("/rules");
    expect(parseLink("/rules").screen.rulesPage).toEqual(INITIAL_RULES_PAGE);
  });

  it.each([
    "span=1y",
    "between=2026-11-15T10:00Z",
    "between=2026-11-15T10:00Z~2026-11-15T09:00Z",
    "between=~",
    "rule=Not%20a%20key",
    "severity=huge",
    "when=later",
    "by=color",
    "broke=%00",
    "list=cats",
  ])("says so where %s means nothing", (query) => {
    const { screen, notices } = parseLink(`/rules?${query}`);
    expect(screen.rulesPage).toEqual(INITIAL_RULES_PAGE);
    expect(notices).toHaveLength(1);
  });
});

describe("a part of the time", () => {
  it("is whole minutes, one at least", () => {
    expect(toTimeRange(61_000, 62_000)).toEqual({ fromMs: 60_000, toMs: 120_000 });
    expect(toTimeRange(60_000, 60_000)).toEqual({ fromMs: 60_000, toMs: 120_000 });
    expect(toTimeRange(0, 180_001)).toEqual({ fromMs: 0, toMs: 240_000 });
  });
});

describe("narrowing", () => {
  it("is distinguished from the order and the time", () => {
    expect(isNarrowed({ ...INITIAL_RULES_PAGE, span: "7d", rule: "idle" })).toBe(false);
    expect(isNarrowed({ ...INITIAL_RULES_PAGE, users: [""] })).toBe(true);
    expect(isNarrowed({ ...INITIAL_RULES_PAGE, state: "muted" })).toBe(true);
  });

  it("turns a name on and off", () => {
    expect(toggled(["a"], "b")).toEqual(["a", "b"]);
    expect(toggled(["a", "b"], "a")).toEqual(["b"]);
  });
});

describe("a violation that is chosen", () => {
  const chosen = (workload: string) => selectViolation(workload, "node-down")(INITIAL_SCREEN).selection;

  it("is a workload, or the node that broke a rule on hardware", () => {
    expect(chosen("slurm:7")).toEqual({ kind: "workload", key: "slurm:7" });
    expect(chosen("node:gpu01")).toEqual({ kind: "node", key: "gpu01" });
  });
});
