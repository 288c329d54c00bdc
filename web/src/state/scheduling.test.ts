import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ESTIMATES, RULE_PRESETS } from "../base/catalogue.ts";
import {
  changeSimulator,
  DISTRIBUTION_SHAPES,
  INITIAL_SCHEDULING,
  isWhatIf,
  QUEUE_COLUMNS,
  SCHEDULING_TABS,
  type SchedulingPage,
} from "./scheduling.ts";
import { INITIAL_SCREEN, parseScreen, type Screen, serializeScreen, VIEW_NAMES } from "./screen.ts";

const words = fc.constantFrom("", "fcfs", "size-priority");
const names = fc.uniqueArray(fc.constantFrom("gpu-001", "slurm:4711", "slurm:12_3"));
const pairs = fc.uniqueArray(fc.constantFrom("main:4", "a100-large:16", "debug queue:1"));

const pages: fc.Arbitrary<SchedulingPage> = fc
  .record({
    tab: fc.constantFrom(...SCHEDULING_TABS),
    queue: fc.constantFrom("", "a100-large", "v 100"),
    sort: fc.record({ column: fc.constantFrom(...QUEUE_COLUMNS), descending: fc.boolean() }),
    ahead: fc.constantFrom(0, 0.5, 6, 30),
    ask: fc.option(
      fc.record({
        gpus: fc.integer({ min: 1, max: 1000 }),
        hours: fc.constantFrom(0.25, 4, 72),
        partition: fc.constantFrom("", "v100"),
      }),
    ),
    history: fc.uniqueArray(fc.constantFrom("cluster", "mira-0a1b2c3d", "kth+1"), { maxLength: 4 }),
    shape: fc.constantFrom(...DISTRIBUTION_SHAPES),
    simulator: fc.record({
      trace: fc.constantFrom("", "cluster", "mira-0a1b2c3d"),
      orders: fc.uniqueArray(fc.constantFrom("fcfs", "sjf", "size-priority")),
      fills: fc.uniqueArray(fc.constantFrom("easy", "easy++", "none")),
      rules: fc.constantFrom(...RULE_PRESETS),
      estimates: fc.constantFrom(...ESTIMATES),
      omegas: fc.uniqueArray(fc.constantFrom("0.1", "0.05", "2")),
      machine: fc.constantFrom("", "128"),
      result: fc.constantFrom("", "0a1b2c3d4e5f"),
    }),
    whatIf: fc.record({
      policy: words,
      backfill: words,
      placement: words,
      drained: names,
      added: pairs,
      limits: pairs,
      first: names,
    }),
  })
  .map((chosen) => ({ ...INITIAL_SCHEDULING, ...chosen }));

function parse(link: string) {
  const url = new URL(link, "http://page");
  return parseScreen(url.pathname, url.search, VIEW_NAMES);
}

describe("the scheduling page's part of a link", () => {
  it("forgets a result when the choice changes, and keeps one that is named", () => {
    const shown = changeSimulator({ trace: "a", result: "0a1b2c3d4e" })(INITIAL_SCREEN);
    expect(shown.scheduling.simulator.result).toBe("0a1b2c3d4e");
    expect(changeSimulator({ orders: ["sjf"] })(shown).scheduling.simulator.result).toBe("");
  });

  it("reads back what it wrote", () => {
    fc.assert(
      fc.property(pages, (scheduling) => {
        const { screen, notices } = parse(serializeScreen({ ...INITIAL_SCREEN, view: "scheduling", scheduling }));
        expect(screen.scheduling).toEqual(scheduling);
        expect(notices).toEqual([]);
      }),
    );
  });

  it("leaves out nonsense and says so", () => {
    const { screen, notices } = parse("/scheduling?tab=dreams&ask=0x1h&policy=DROP%20TABLE&add=nowhere&order=-luck");
    expect(screen.scheduling).toEqual(INITIAL_SCHEDULING);
    expect(notices).toHaveLength(5);
  });

  it("is short where nothing is chosen", () => {
    const waiting: Screen = { ...INITIAL_SCREEN, view: "scheduling", selection: { kind: "workload", key: "slurm:7" } };
    expect(serializeScreen(waiting)).toBe("/scheduling?select=workload:slurm:7");
    expect(isWhatIf(INITIAL_SCHEDULING.whatIf)).toBe(false);
  });
});
