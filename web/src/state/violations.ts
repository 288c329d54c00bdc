// The rules page in a link: time, filters and order of violations. Its filters do not affect the overview.

import { MINUTE_MS } from "../base/durations.ts";
import type { Field } from "./fields.ts";
import { choiceField, textField } from "./fields.ts";
import { formatMoment, momentField, toMinute } from "./time.ts";

export const SPANS = ["2h", "24h", "7d", "30d"] as const;
export type Span = (typeof SPANS)[number];

export const SPAN_HOURS: Readonly<Record<Span, number>> = { "2h": 2, "24h": 24, "7d": 168, "30d": 720 };

export const VIOLATION_STATES = ["all", "now", "past", "muted"] as const;
export type ViolationState = (typeof VIOLATION_STATES)[number];

export const SEVERITIES = ["critical", "warning", "info"] as const;
type SeverityName = (typeof SEVERITIES)[number];

export const VIOLATION_COLUMNS = [
  "rule",
  "workload",
  "user",
  "project",
  "gpus",
  "gpu_hours",
  "since",
  "until",
  "readings",
] as const;
export type ViolationColumn = (typeof VIOLATION_COLUMNS)[number];

export interface ViolationSort {
  readonly column: ViolationColumn;
  readonly descending: boolean;
}

export interface TimeRange {
  /** Unix ms, whole minutes. */
  readonly fromMs: number;
  readonly toMs: number;
}

export interface RulesPage {
  readonly shows: "violations" | "rules";
  readonly span: Span;
  /** A part of the span; null: all of it. */
  readonly range: TimeRange | null;
  /** Keys; none: all. */
  readonly rules: readonly string[];
  readonly severities: readonly SeverityName[];
  /** Empty text: unknown. */
  readonly users: readonly string[];
  readonly projects: readonly string[];
  readonly state: ViolationState;
  readonly text: string;
  readonly sort: ViolationSort;
  /** The rule that was chosen with the selected workload. */
  readonly rule: string | null;
}

const MOST_NAMES = 100;
/** The server's pattern for keys of rules. */
const RULE_KEY = /^[a-z0-9][a-z0-9_-]{0,63}$/;

function namesField(key: string, isFit: (name: string) => boolean = () => true): Field<readonly string[]> {
  return {
    key,
    initial: [],
    parse(texts) {
      const names = [...new Set(texts)];
      return names.length <= MOST_NAMES && names.every(isFit) ? names : undefined;
    },
    serialize: (names) => names,
  };
}

const rangeField: Field<TimeRange | null> = {
  key: "between",
  initial: null,
  parse([text = ""]) {
    const [from, to, ...rest] = text.split("~").map((end) => momentField.parse([end]));
    if (typeof from !== "number" || typeof to !== "number" || rest.length > 0 || from >= to) return undefined;
    return { fromMs: from, toMs: to };
  },
  serialize: (range) => (range ? [`${formatMoment(range.fromMs)}~${formatMoment(range.toMs)}`] : []),
};

const INITIAL_SORT: ViolationSort = { column: "gpu_hours", descending: true };

const sortField: Field<ViolationSort> = {
  key: "by",
  initial: INITIAL_SORT,
  parse([text = ""]) {
    const descending = text.startsWith("-");
    const column = VIOLATION_COLUMNS.find((candidate) => candidate === text.slice(descending ? 1 : 0));
    return column === undefined ? undefined : { column, descending };
  },
  serialize: ({ column, descending }) =>
    column === INITIAL_SORT.column && descending === INITIAL_SORT.descending
      ? []
      : [`${descending ? "-" : ""}${column}`],
};

const severitiesField: Field<readonly SeverityName[]> = {
  key: "severity",
  initial: [],
  parse(texts) {
    const severities = SEVERITIES.filter((severity) => texts.includes(severity));
    return texts.every((text) => SEVERITIES.some((severity) => severity === text)) ? severities : undefined;
  },
  serialize: (severities) => severities,
};

const focusField: Field<string | null> = {
  key: "broke",
  initial: null,
  parse: ([text = ""]) => (RULE_KEY.test(text) ? text : undefined),
  serialize: (rule) => (rule === null ? [] : [rule]),
};

const FIELDS = {
  shows: choiceField("list", ["violations", "rules"], "violations"),
  span: choiceField("span", SPANS, "24h"),
  range: rangeField,
  rules: namesField("rule", (key) => RULE_KEY.test(key)),
  severities: severitiesField,
  users: namesField("whose"),
  projects: namesField("project_of"),
  state: choiceField("when", VIOLATION_STATES, "all"),
  text: textField("find"),
  sort: sortField,
  rule: focusField,
} satisfies { readonly [K in keyof RulesPage]: Field<RulesPage[K]> };

export const INITIAL_RULES_PAGE: RulesPage = {
  shows: FIELDS.shows.initial,
  span: FIELDS.span.initial,
  range: null,
  rules: [],
  severities: [],
  users: [],
  projects: [],
  state: FIELDS.state.initial,
  text: "",
  sort: INITIAL_SORT,
  rule: null,
};

export function parseRulesPage(read: <T>(field: Field<T>) => T): RulesPage {
  return {
    shows: read(FIELDS.shows),
    span: read(FIELDS.span),
    range: read(FIELDS.range),
    rules: read(FIELDS.rules),
    severities: read(FIELDS.severities),
    users: read(FIELDS.users),
    projects: read(FIELDS.projects),
    state: read(FIELDS.state),
    text: read(FIELDS.text),
    sort: read(FIELDS.sort),
    rule: read(FIELDS.rule),
  };
}

export function writeRulesPage(page: RulesPage, write: <T>(field: Field<T>, value: T) => void): void {
  write(FIELDS.shows, page.shows);
  write(FIELDS.span, page.span);
  write(FIELDS.range, page.range);
  write(FIELDS.rules, page.rules);
  write(FIELDS.severities, page.severities);
  write(FIELDS.users, page.users);
  write(FIELDS.projects, page.projects);
  write(FIELDS.state, page.state);
  write(FIELDS.text, page.text);
  write(FIELDS.sort, page.sort);
  write(FIELDS.rule, page.rule);
}

/** Whole minutes, the last one included. */
export function toTimeRange(fromMs: number, toMs: number): TimeRange {
  const from = toMinute(fromMs);
  return { fromMs: from, toMs: Math.max(from + MINUTE_MS, toMinute(toMs + MINUTE_MS - 1)) };
}

export function isNarrowed(page: RulesPage): boolean {
  const { rules, severities, users, projects, state, text } = page;
  return [rules, severities, users, projects].some((names) => names.length > 0) || state !== "all" || text !== "";
}

export function toggled<T>(names: readonly T[], name: T): readonly T[] {
  return names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
}
