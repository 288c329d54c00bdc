// What the rules say, in the rows of a snapshot. Pure, and column code: built once for what the server says, then only read.

import type { NameColumn } from "../api/columns.ts";
import type { RuleAnswer, RuleUnits, Severity, UnitViolations } from "../api/generated.ts";
import type { Snapshot } from "../api/snapshot.ts";
import { RULE_STATES } from "../state/rules.ts";

/** Of one rule for one row. A past violation is that of a workload that is still there. */
export const KEPT = 0;
export const PAST = 1;
export const BROKEN = 2;

export interface RowRule {
  readonly rule: RuleAnswer;
  /** By row. */
  readonly states: Uint8Array;
  /** The rows that break it, and those that did; ascending. */
  readonly broken: Uint32Array;
  readonly past: Uint32Array;
  /** What was said of it. */
  readonly said: RuleUnits | undefined;
}

export interface UnitRules {
  /** Enabled rules in the order of the bar. */
  readonly rules: readonly RowRule[];
  /** Every rule there is, in the order of the bar. */
  readonly all: readonly RuleAnswer[];
  /** What the rows are those of. */
  readonly snapshot: Snapshot;
  /** Another one when any row says something else. */
  readonly version: number;
}

export const SEVERITIES: readonly Severity[] = ["critical", "warning", "info"];

/** 0 for the most severe. */
export function severityRank(severity: Severity): number {
  return SEVERITIES.indexOf(severity);
}

const rowsOf = new WeakMap<Snapshot, ReadonlyMap<string, number>>();

function findRows(snapshot: Snapshot): ReadonlyMap<string, number> {
  const known = rowsOf.get(snapshot);
  if (known) return known;
  const { codes, names } = snapshot.names("unit");
  const rows = new Map<string, number>();
  for (let row = 0; row < codes.length; row += 1) {
    const name = names[codes[row] ?? 0];
    if (name) rows.set(name, row);
  }
  rowsOf.set(snapshot, rows);
  return rows;
}

/** `last`: what was said before; where nothing changed it is given back, so that nothing is computed for it again. */
export function alignRules(
  snapshot: Snapshot,
  all: readonly RuleAnswer[],
  said: UnitViolations | undefined,
  last: UnitRules | null = null,
): UnitRules {
  const rows = findRows(snapshot);
  const byKey = new Map(said?.rules.map((one) => [one.rule, one]));
  const rules = all
    .filter((rule) => rule.is_enabled)
    .map((rule): RowRule => {
      const found = byKey.get(rule.key);
      const known = last?.snapshot === snapshot ? last.rules.find((one) => one.rule.key === rule.key) : undefined;
      // Rules are judged again and again, mostly with the same outcome; names are dear to look up.
      if (known && isSaidAgain(found, known.said)) return { ...known, rule };
      const states = new Uint8Array(snapshot.rowCount);
      const past = mark(states, rows, found?.past ?? [], PAST);
      const broken = mark(states, rows, found?.units ?? [], BROKEN);
      return { rule, states, broken, past: past.filter((row) => states[row] === PAST), said: found };
    });
  if (last?.snapshot === snapshot && isSame(rules, last.rules)) {
    return last.all === all ? last : { ...last, rules, all };
  }
  return { rules, all, snapshot, version: (last?.version ?? 0) + 1 };
}

function isSaidAgain(a: RuleUnits | undefined, b: RuleUnits | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return isSameList(a.units, b.units) && isSameList(a.past, b.past);
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((name, index) => name === b[index]));
}

function mark(
  states: Uint8Array,
  rows: ReadonlyMap<string, number>,
  units: readonly string[],
  state: number,
): Uint32Array {
  const marked: number[] = [];
  for (const unit of units) {
    const row = rows.get(unit);
    if (row === undefined || states[row] === state) continue;
    states[row] = state;
    marked.push(row);
  }
  return Uint32Array.from(marked).sort();
}

function isSame(a: readonly RowRule[], b: readonly RowRule[]): boolean {
  if (a.length !== b.length) return false;
  return a.every((one, index) => {
    const other = b[index];
    return (
      other !== undefined &&
      one.rule.key === other.rule.key &&
      one.rule.name === other.rule.name &&
      one.rule.severity === other.rule.severity &&
      (one.states === other.states || isEqual(one.states, other.states))
    );
  });
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index += 1) if (a[index] !== b[index]) return false;
  return true;
}

/** Not `none`: so the page calls what has no name at all, such as what nobody holds. */
export const NO_RULE_BROKEN = "none broken";

const columns = new WeakMap<UnitRules, Map<string, NameColumn>>();

/** The most severe rule that each held unit breaks, by its name; of several the first of the bar. */
export function readWorst(rules: UnitRules): NameColumn {
  return remember(rules, "", () => {
    const ordered = [...rules.rules].sort((a, b) => severityRank(a.rule.severity) - severityRank(b.rule.severity));
    const codes = markHeld(rules.snapshot);
    // From the least severe on, so that the worst is written last.
    for (let place = ordered.length - 1; place >= 0; place -= 1) {
      for (const row of ordered[place]?.broken ?? []) codes[row] = place + 2;
    }
    return { codes, names: [null, NO_RULE_BROKEN, ...ordered.map(({ rule }) => rule.name)] };
  });
}

/** Whether each held unit breaks a rule; missing where the rule is switched off or there is none. */
export function readRule(rules: UnitRules, key: string): NameColumn {
  return remember(rules, key, () => {
    const found = rules.rules.find(({ rule }) => rule.key === key);
    const codes = found ? markHeld(rules.snapshot, 3) : new Uint32Array(rules.snapshot.rowCount);
    for (const row of found?.past ?? []) codes[row] = 2;
    for (const row of found?.broken ?? []) codes[row] = 1;
    return { codes, names: [null, ...RULE_STATES] };
  });
}

function remember(rules: UnitRules, key: string, compute: () => NameColumn): NameColumn {
  const known = columns.get(rules) ?? new Map<string, NameColumn>();
  columns.set(rules, known);
  const column = known.get(key) ?? compute();
  known.set(key, column);
  return column;
}

/** 1, or another code, for each row that somebody holds; nobody judges the others. */
function markHeld(snapshot: Snapshot, code = 1): Uint32Array {
  const { codes, names } = snapshot.names("unit_state");
  const held = Uint32Array.from(names, (name) => (name === "allocated" ? code : 0));
  const marked = new Uint32Array(codes.length);
  for (let row = 0; row < codes.length; row += 1) marked[row] = held[codes[row] ?? 0] ?? 0;
  return marked;
}

/** How many workloads break a rule, for minutes of which only the units are known. */
export function countWorkloads(snapshot: Snapshot, { broken }: RowRule): number {
  const { codes } = snapshot.names("workload");
  const found = new Set<number>();
  for (const row of broken) found.add(codes[row] ?? 0);
  found.delete(0);
  return found.size;
}
