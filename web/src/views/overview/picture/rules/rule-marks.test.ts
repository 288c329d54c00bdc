import { describe, expect, it } from "vitest";
import type { RuleAnswer, Severity } from "../../../../api/generated.ts";
import { BROKEN, PAST } from "../../../../data/row-rules.ts";
import type { UnitLayout } from "../../../../layout/layout.ts";
import { findBar, stackBars } from "./rule-bars.ts";
import { computeRuleMarks, countIn, listBroken, listStates, type ShownRule } from "./rule-marks.ts";

/** All, two partitions, three workloads of 4, 4 and 2 units; the last unit is not drawn. */
const LAYOUT = {
  layers: [{}, {}],
  group: Uint32Array.from([3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5]),
  size: Float32Array.from([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]),
  groups: {
    count: 6,
    parent: Uint32Array.from([0, 0, 0, 1, 1, 2]),
    depth: Uint8Array.from([0, 1, 1, 2, 2, 2]),
    unitCount: Uint32Array.from([10, 8, 2, 4, 4, 2]),
    x: Float64Array.from([0, 0, 20, 1, 8, 21]),
    y: Float64Array.from([0, 0, 0, 3, 3, 3]),
    width: Float64Array.from([30, 14, 10, 5, 5, 3]),
    height: Float64Array.from([10, 9, 9, 5, 5, 5]),
    padding: [0, 1, 0.5],
    labelHeight: [0, 1, 0],
  },
} as unknown as UnitLayout;

function shown(key: string, severity: Severity, broken: readonly number[], past: readonly number[] = []): ShownRule {
  const states = new Uint8Array(11);
  for (const row of past) states[row] = PAST;
  for (const row of broken) states[row] = BROKEN;
  const rule = { key, severity, name: key } as RuleAnswer;
  const rows = { rule, states, broken: Uint32Array.from(broken), past: Uint32Array.from(past), said: undefined };
  return { key, name: key, severity, color: 0, rows };
}

const RULES = [
  shown("low", "warning", [0, 1, 8, 10]),
  shown("idle", "info", [0]),
  shown("stall", "critical", [0, 1, 2, 3], [4]),
];
const NEAR = { scale: 40, offsetX: 0, offsetY: 0 };
const FAR = { scale: 6, offsetX: 0, offsetY: 0 };

describe("marks of rules", () => {
  const marks = computeRuleMarks(LAYOUT, RULES);

  it("count drawn units of every group, inner and outer", () => {
    expect([0, 1, 2, 3, 4, 5].map((group) => countIn(marks, 0, group))).toEqual([3, 2, 1, 2, 0, 1]);
    expect(countIn(marks, 2, 1)).toBe(4);
  });

  it("list the innermost groups that are marked, and the rules of each in order", () => {
    expect([...marks.groups]).toEqual([3, 5]);
    expect(listBroken(marks, 3)).toEqual([0, 1, 2]);
    expect(listBroken(marks, 4)).toEqual([]);
  });

  it("tell the past from the present", () => {
    expect(listStates(marks, 4)).toEqual([{ rule: 2, isPast: true }]);
    expect([...marks.rows]).toEqual([0, 1, 2, 3, 4, 8]);
  });

  it("stand above their group as high as the share of its units", () => {
    const { isStrip, bars, folded } = stackBars(LAYOUT, marks, 3, NEAR);
    expect({ isStrip, folded }).toEqual({ isStrip: false, folded: 0 });
    expect(bars.map(({ rule, share }) => [rule, share])).toEqual([
      [0, 0.5],
      [1, 0.25],
      [2, 1],
    ]);
    for (const { top, height } of bars) {
      expect(top).toBeGreaterThan(3 * NEAR.scale);
      expect(top + height).toBeLessThan(3.5 * NEAR.scale);
    }
  });

  it("fold by severity where there is no room", () => {
    const narrow = { ...LAYOUT, groups: { ...LAYOUT.groups, width: Float32Array.from([30, 14, 10, 1.6, 5, 3]) } };
    const { bars, folded } = stackBars(narrow, marks, 3, NEAR);
    expect(bars.map(({ rule }) => rule)).toEqual([2]);
    expect(folded).toBe(2);
  });

  it("are one strip in parts when seen from afar, and never nothing", () => {
    const { isStrip, bars } = stackBars(LAYOUT, marks, 3, FAR);
    expect(isStrip).toBe(true);
    expect(bars.reduce((sum, { width }) => sum + width, 0)).toBeCloseTo(30);
    const tiny = stackBars(LAYOUT, marks, 3, { ...FAR, scale: 0.5 });
    expect(tiny.bars.map(({ rule }) => rule)).toEqual([2]);
  });

  it("are found under the pointer, and only where they are", () => {
    const [bar] = stackBars(LAYOUT, marks, 3, NEAR).bars;
    expect(bar && findBar(LAYOUT, marks, NEAR, bar.left + 2, bar.top + 2)).toEqual({ group: 3, rule: 0 });
    expect(findBar(LAYOUT, marks, NEAR, 2 * 40, 4 * 40)).toBeNull();
    expect(findBar(LAYOUT, marks, NEAR, 9 * 40, 3 * 40 + 4)).toBeNull();
  });
});
