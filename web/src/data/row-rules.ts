// Rule results aligned with the rows of a snapshot, as columns: computed once per response. Pure.

import type { NameColumn } from "../api/columns.ts";
import type { RuleAnswer, RuleUnits, Severity, UnitViolations } from "../api/generated.ts";
import type { Snapshot } from "../api/snapshot.ts";
import { RULE_STATES } from "../state/rules.ts";

/** The state of a rule for a row. A past violation belongs to a workload that is still there. */
export const KEPT = 0;
export const PAST = 1;
export const BROKEN = 2;

export interface RowRule {
  readonly rule: RuleAnswer;
  /** By row. */
  readonly states: Uint8Array;
  /** Rows that break the rule now, and rows that broke it earlier; ascending. */
  readonly broken: Uint32Array;
  readonly past: Uint32Array;
  /** The response that it was computed from. */
  readonly said: RuleUnits | undefined;
}

export interface UnitRules {
  /** Enabled rules in the order of the bar. */
  readonly rules: readonly RowRule[];
  /** Every rule there is, in the order of the bar. */
  readonly all: readonly RuleAnswer[];
  /** The snapshot that the rows belong to. */
  readonly snapshot: Snapshot;
  /** Changes when the result of any row changes. */
  readonly version: number;
}

export const SEVERITIES: readonly Severity[] = ["critical", "warning", "info"];

/** 0 for the most severe. */
export function severityRank(severity: Severity): number {
  return SEVERITIES.indexOf(severity);
}

const rowsOf = new WeakMap<Snapshot, ReadonlyMap<string, number>>();

function findRows(snapshot: Snapshot): ReadonlyMap<string, number> {
  const cached = rowsOf.get(snapshot);
  if (cached) return cached;
  const { codes, names } = snapshot.names("unit");
  const rows = new Map<string, number>();
  for (let row = 0; row < codes.length; row += 1) {
    const name = names[codes[row] ?? 0];
    if (name) rows.set(name, row);
  }
  rowsOf.set(snapshot, rows);
  return rows;
}

/** `last`: the previous result; returned if nothing changed, so that dependents are not recomputed. */
export function alignRules(
  snapshot: Snapshot,
  all: readonly RuleAnswer[],
  violations: UnitViolations | undefined,
  last: UnitRules | null = null,
): UnitRules {
  const rows = findRows(snapshot);
  const byKey = new Map(violations?.rules.map((entry) => [entry.rule, entry]));
  const rules = all
    .filter((rule) => rule.is_enabled)
    .map((rule): RowRule => {
      const entry = byKey.get(rule.key);
      const previous = last?.snapshot === snapshot ? last.rules.find((row) => row.rule.key === rule.key) : undefined;
      // Rules are evaluated often, mostly with the same result, and looking up names is expensive.
      if (previous && isSaidAgain(entry, previous.said)) return { ...previous, rule };
      const states = new Uint8Array(snapshot.rowCount);
      const past = mark(states, rows, entry?.past ?? [], PAST);
      const broken = mark(states, rows, entry?.units ?? [], BROKEN);
      return { rule, states, broken, past: past.filter((row) => states[row] === PAST), said: entry };
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
  return a.every((row, index) => {
    const other = b[index];
    return (
      other !== undefined &&
      row.rule.key === other.rule.key &&
      row.rule.name === other.rule.name &&
      row.rule.severity === other.rule.severity &&
      (row.states === other.states || isEqual(row.states, other.states))
    );
  });
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index += 1) if (a[index] !== b[index]) return false;
  return true;
}

/** Not `none`, which the page uses for missing names. */
export const NO_RULE_BROKEN = "none broken";

const columns = new WeakMap<UnitRules, Map<string, NameColumn>>();

/** The name of the most severe rule that each allocated unit breaks; among equals the first of the bar. */
export function readWorst(rules: UnitRules): NameColumn {
  return getOrCompute(rules, "", () => {
    const ordered = [...rules.rules].sort((a, b) => severityRank(a.rule.severity) - severityRank(b.rule.severity));
    const codes = markHeld(rules.snapshot);
    // Least severe first, so that the most severe is written last.
    for (let place = ordered.length - 1; place >= 0; place -= 1) {
      for (const row of ordered[place]?.broken ?? []) codes[row] = place + 2;
    }
    return { codes, names: [null, NO_RULE_BROKEN, ...ordered.map(({ rule }) => rule.name)] };
  });
}

/** Whether each allocated unit breaks a rule; missing if the rule is disabled or unknown. */
export function readRule(rules: UnitRules, key: string): NameColumn {
  return getOrCompute(rules, key, () => {
    const rowRule = rules.rules.find(({ rule }) => rule.key === key);
    const codes = rowRule ? markHeld(rules.snapshot, 3) : new Uint32Array(rules.snapshot.rowCount);
    for (const row of rowRule?.past ?? []) codes[row] = 2;
    for (const row of rowRule?.broken ?? []) codes[row] = 1;
    return { codes, names: [null, ...RULE_STATES] };
  });
}

function getOrCompute(rules: UnitRules, key: string, compute: () => NameColumn): NameColumn {
  const cache = columns.get(rules) ?? new Map<string, NameColumn>();
  columns.set(rules, cache);
  const column = cache.get(key) ?? compute();
  cache.set(key, column);
  return column;
}

/** `code` for each allocated row; other rows are not evaluated. */
function markHeld(snapshot: Snapshot, code = 1): Uint32Array {
  const { codes, names } = snapshot.names("unit_state");
  const codeByState = Uint32Array.from(names, (name) => (name === "allocated" ? code : 0));
  const marked = new Uint32Array(codes.length);
  for (let row = 0; row < codes.length; row += 1) marked[row] = codeByState[codes[row] ?? 0] ?? 0;
  return marked;
}

/** The number of workloads that break a rule, for past minutes of which only the units are known. */
export function countWorkloads(snapshot: Snapshot, { broken }: RowRule): number {
  const { codes } = snapshot.names("workload");
  const workloads = new Set<number>();
  for (const row of broken) workloads.add(codes[row] ?? 0);
  workloads.delete(0);
  return workloads.size;
}
