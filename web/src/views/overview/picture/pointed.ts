// What the pointer is over: a unit's row, or else a group, or a bar of a rule above one.

import type { PointedRule } from "./rules/rule-bars.ts";

export interface Pointed {
  readonly row: number | null;
  readonly group: number | null;
  readonly rule: PointedRule | null;
}

export const NOTHING_POINTED: Pointed = { row: null, group: null, rule: null };

export function isSamePointed(a: Pointed, b: Pointed): boolean {
  return a.row === b.row && a.group === b.group && a.rule?.group === b.rule?.group && a.rule?.rule === b.rule?.rule;
}
