// Which groups and units of a layout break which rules: what is painted above groups and into squares. Pure, and column
// code: it only looks at rows that break something.

import type { Severity } from "../../../../api/generated.ts";
import { formatPlural } from "../../../../base/format.ts";
import { BROKEN, type RowRule } from "../../../../data/row-rules.ts";
import type { PackedColor } from "../../../../layers/squares/marks.ts";
import type { UnitLayout } from "../../../../layout/layout.ts";

export interface ShownRule {
  readonly key: string;
  readonly name: string;
  readonly severity: Severity;
  readonly color: PackedColor;
  readonly rows: RowRule;
}

export interface RuleMarks {
  /** In the order of the rules. */
  readonly rules: readonly ShownRule[];
  /** The slot of each rule: rules that no drawn unit breaks or broke take none (−1). */
  readonly slots: Int16Array;
  readonly slotCount: number;
  /** Drawn units of each group that break each rule: `counts[rule × groups + group]`; outer groups have those inside. */
  readonly counts: Uint32Array;
  /** Innermost groups with a unit that breaks a rule. */
  readonly groups: Uint32Array;
  /** Drawn rows that break or broke a rule, ascending. */
  readonly rows: Uint32Array;
}

export function computeRuleMarks(layout: UnitLayout, rules: readonly ShownRule[]): RuleMarks {
  const { count, parent } = layout.groups;
  const counts = new Uint32Array(rules.length * count);
  const isMarked = new Uint8Array(count);
  const isNamed = new Uint8Array(layout.size.length);
  const slots = new Int16Array(rules.length).fill(-1);
  let slotCount = 0;
  rules.forEach(({ rows: { broken, past } }, rule) => {
    const start = rule * count;
    const isDrawn = (row: number) => (layout.size[row] ?? 0) > 0;
    if (broken.some(isDrawn) || past.some(isDrawn)) {
      slots[rule] = slotCount;
      slotCount += 1;
    }
    for (let index = 0; index < past.length; index += 1) {
      const row = past[index] ?? 0;
      if ((layout.size[row] ?? 0) > 0) isNamed[row] = 1;
    }
    for (let index = 0; index < broken.length; index += 1) {
      const row = broken[index] ?? 0;
      if ((layout.size[row] ?? 0) <= 0) continue;
      isNamed[row] = 1;
      const group = layout.group[row] ?? 0;
      isMarked[group] = 1;
      counts[start + group] = (counts[start + group] ?? 0) + 1;
    }
    // Children come after their parents.
    for (let group = count - 1; group > 0; group -= 1) {
      const outer = start + (parent[group] ?? 0);
      counts[outer] = (counts[outer] ?? 0) + (counts[start + group] ?? 0);
    }
  });
  return { rules, slots, slotCount, counts, groups: listMarked(isMarked), rows: listMarked(isNamed) };
}

function listMarked(flags: Uint8Array): Uint32Array {
  const indices: number[] = [];
  for (let index = 0; index < flags.length; index += 1) if (flags[index] === 1) indices.push(index);
  return Uint32Array.from(indices);
}

/** For those who hear the page. */
export function describeMarks({ rules, counts }: RuleMarks): string {
  const groups = counts.length / Math.max(1, rules.length);
  const broken = rules.flatMap(({ name }, rule) => {
    const units = counts[rule * groups] ?? 0;
    return units === 0 ? [] : [`${name} by ${formatPlural(units, "unit")}`];
  });
  return broken.length > 0 ? `Rules broken: ${broken.join("; ")}.` : "";
}

/** How many units of a group break a rule. */
export function countIn({ counts, rules }: RuleMarks, rule: number, group: number): number {
  return counts[rule * (counts.length / Math.max(1, rules.length)) + group] ?? 0;
}

/** The rules that any unit of a group breaks, in order. */
export function listBroken(marks: RuleMarks, group: number): readonly number[] {
  const broken: number[] = [];
  for (let rule = 0; rule < marks.rules.length; rule += 1) if (countIn(marks, rule, group) > 0) broken.push(rule);
  return broken;
}

/** The rules a row breaks or, with `state` of the past, broke; in order. */
export function listStates({ rules }: RuleMarks, row: number): readonly { rule: number; isPast: boolean }[] {
  return rules.flatMap(({ rows }, rule) => {
    const state = rows.states[row] ?? 0;
    return state === 0 ? [] : [{ rule, isPast: state !== BROKEN }];
  });
}
