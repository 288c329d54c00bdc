import { describe, expect, it } from "vitest";
import type { RuleAnswer, Severity } from "../../../../api/generated.ts";
import { BROKEN, PAST } from "../../../../data/row-rules.ts";
import type { UnitLayout } from "../../../../layout/layout.ts";
import { findBar, listMarkedGroups, placeGroupSlots, placeUnitSlots } from "./rule-bars.ts";
import { computeRuleMarks, countIn, listBroken, listStates, type ShownRule } from "./rule-marks.ts";

/** All, two partitions, three workloads of 4, 4 and 2 units; the last unit is not drawn. */
const LAYOUT = {
  layers: [{}, {}],
  unitGap: 0.2,
  x: Float32Array.from([1.5, 2.7, 1.5, 2.7, 8.5, 9.7, 8.5, 9.7, 21.5, 22.7, 0]),
  y: Float32Array.from([3.5, 3.5, 4.7, 4.7, 3.5, 3.5, 4.7, 4.7, 3.5, 3.5, 0]),
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

  it("have one slot for each rule, the same for a unit, its group and the group around it", () => {
    const unit = placeUnitSlots(LAYOUT, marks, 0, { ...NEAR, scale: 200 });
    const slotsOf = [3, 1, 0].map((group) => placeGroupSlots(LAYOUT, marks, group, NEAR));
    for (const slots of [...slotsOf, unit]) {
      const pitch = (slots[1]?.left ?? 0) - (slots[0]?.left ?? 0);
      expect(slots.map(({ rule }) => rule)).toEqual([0, 1, 2]);
      expect((slots[2]?.left ?? 0) - (slots[0]?.left ?? 0)).toBeCloseTo(2 * pitch);
    }
    // Nothing moves up where a rule before it is kept.
    const [only] = placeUnitSlots(LAYOUT, marks, 2, { ...NEAR, scale: 200 });
    expect(only).toMatchObject({ rule: 2, left: unit[2]?.left });
  });

  it("take no slot where no drawn unit breaks or broke the rule", () => {
    const some = computeRuleMarks(LAYOUT, [shown("hidden", "info", [10]), ...RULES]);
    expect([...some.slots]).toEqual([-1, 0, 1, 2]);
    expect(some.slotCount).toBe(3);
  });

  it("are filled by the share of the units, and only by all of them wholly", () => {
    for (const camera of [NEAR, FAR]) {
      const filled = placeGroupSlots(LAYOUT, marks, 3, camera).map((slot) => slot.filled / slot.width);
      expect(filled[2]).toBe(1);
      expect(filled[0]).toBeCloseTo(0.5);
      expect(filled[1]).toBeGreaterThan(0.2);
    }
    const most = computeRuleMarks(LAYOUT, [shown("most", "info", [0, 1, 2, 3, 4, 5, 6])]);
    const [slot] = placeGroupSlots(LAYOUT, most, 1, FAR);
    expect(slot?.share).toBe(0.875);
    expect((slot?.width ?? 0) - (slot?.filled ?? 0)).toBeGreaterThan(1);
  });

  it("never stand on a square, at any size", () => {
    for (const scale of [1, 3, 6, 12, 40, 120]) {
      const camera = { scale, offsetX: 0, offsetY: 0 };
      for (const group of listMarkedGroups(LAYOUT, marks, camera)) {
        const depth = LAYOUT.groups.depth[group] ?? 0;
        const top = LAYOUT.groups.y[group] ?? 0;
        const padding = LAYOUT.groups.padding[depth] ?? 0;
        const below = top + padding + (LAYOUT.groups.labelHeight[depth] ?? 0);
        for (const slot of placeGroupSlots(LAYOUT, marks, group, camera)) {
          // Above a group is a gap to its siblings, as high as its padding.
          expect(slot.top).toBeGreaterThan((top - padding) * scale);
          expect(slot.top + slot.height).toBeLessThan(below * scale);
        }
      }
      for (const slot of placeUnitSlots(LAYOUT, marks, 0, camera)) {
        expect(slot.top).toBeGreaterThan(4.5 * scale);
        expect(slot.top + slot.height).toBeLessThan(4.7 * scale);
      }
    }
  });

  it("are all there however narrow the group is, side by side within it", () => {
    const narrow = { ...LAYOUT, groups: { ...LAYOUT.groups, width: Float32Array.from([30, 14, 10, 1.6, 5, 3]) } };
    const slots = placeGroupSlots(narrow, marks, 3, FAR);
    expect(slots.map(({ rule }) => rule)).toEqual([0, 1, 2]);
    slots.slice(1).forEach((slot, index) => {
      const before = slots[index];
      expect(slot.left).toBeGreaterThanOrEqual((before?.left ?? 0) + (before?.width ?? 0));
    });
    const last = slots.at(-1);
    expect((last?.left ?? 0) + (last?.width ?? 0)).toBeLessThanOrEqual((1 + 1.6) * FAR.scale + 1e-3);
  });

  it("mark the group around those that are too small to be marked", () => {
    expect([...listMarkedGroups(LAYOUT, marks, NEAR)].sort()).toEqual([1, 2, 3, 5]);
    expect([...listMarkedGroups(LAYOUT, marks, { ...FAR, scale: 2 })].sort()).toEqual([1, 2]);
  });

  it("are found under the pointer, and only where they are", () => {
    const [bar] = placeGroupSlots(LAYOUT, marks, 3, NEAR);
    expect(bar && findBar(LAYOUT, marks, NEAR, bar.left + 2, bar.top + 2)).toEqual({ group: 3, rule: 0 });
    expect(findBar(LAYOUT, marks, NEAR, 2 * 40, 4 * 40)).toBeNull();
    expect(findBar(LAYOUT, marks, NEAR, 9 * 40, 3 * 40 + 4)).toBeNull();
  });
});
