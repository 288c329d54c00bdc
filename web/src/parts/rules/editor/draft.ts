// A rule while it is edited: conditions as rows, scope as fields, and the same as text and JSON. Pure; the server
// parses the text, so that the language has one parser.

import type { FormRow, RuleAnswer, RuleFault, RuleReading, Severity } from "../../../api/generated.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../base/durations.ts";

export const TABS = ["form", "text", "json"] as const;
export type Tab = (typeof TABS)[number];

export const QUANTIFIERS = ["each", "any", "all", "share"] as const;
export type Quantifier = (typeof QUANTIFIERS)[number];

/** Whom a rule judges, as it is typed. */
export interface ScopeFields {
  /** Separated by commas. */
  readonly users: string;
  readonly projects: string;
  readonly partitions: string;
  readonly machine_types: string;
  readonly names: string;
  /** `10m`, `1h30m`. */
  readonly min_age_ms: string;
  readonly min_samples: string;
  readonly min_gpus: string;
  readonly quantifier: Quantifier;
  /** In percent; only of `share`. */
  readonly share: string;
}

export interface Draft {
  readonly name: string;
  readonly severity: Severity;
  readonly color: string | null;
  readonly reason: string;
  /** To the user of the workload. */
  readonly advice: string;
  /** The form that was typed into last: the others follow it. */
  readonly source: Tab;
  readonly rows: readonly FormRow[];
  readonly scope: ScopeFields;
  readonly text: string;
  readonly json: string;
}

export const EMPTY_ROW: FormRow = {
  metric: "gpu_util_ratio",
  statistic: "percentile",
  argument: "5",
  operator: "<",
  value: "15",
  unit: "%",
  window_ms: null,
  across: null,
  junction: "and",
};

const SCOPE_DEFAULTS: ScopeFields = {
  users: "",
  projects: "",
  partitions: "",
  machine_types: "",
  names: "",
  min_age_ms: "10m",
  min_samples: "10",
  min_gpus: "1",
  quantifier: "each",
  share: "50",
};

export function makeDraft(rule: RuleAnswer | null): Draft {
  if (rule === null) {
    return {
      name: "",
      severity: "warning",
      color: null,
      reason: "",
      advice: "",
      source: "form",
      rows: [EMPTY_ROW],
      scope: SCOPE_DEFAULTS,
      text: "",
      json: "",
    };
  }
  const { name, severity, color, reason, advice, text, form, document } = rule;
  return {
    name,
    severity,
    color,
    reason,
    advice,
    source: form ? "form" : "text",
    rows: form ?? [],
    scope: toScopeFields(document.scope),
    text,
    json: toJson(document),
  };
}

/** The other forms say what was read; the one being typed into stays as it is. */
export function takeReading(draft: Draft, reading: RuleReading): Draft {
  const { document, form, text } = reading;
  if (document === null) return draft;
  return {
    ...draft,
    ...(draft.source === "form" ? {} : { rows: form ?? [], scope: toScopeFields(document.scope) }),
    ...(draft.source === "text" ? {} : { text }),
    ...(draft.source === "json" ? {} : { json: toJson(document) }),
  };
}

export function toJson({ expression, scope }: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ expression, scope }, null, 2);
}

const LISTS = ["users", "projects", "partitions", "machine_types", "names"] as const;

export function toScopeFields(source: unknown): ScopeFields {
  const scope = (source ?? {}) as Readonly<Record<string, unknown>>;
  const list = (name: string) => (Array.isArray(scope[name]) ? scope[name].join(", ") : "");
  const share = scope.share;
  return {
    ...SCOPE_DEFAULTS,
    ...Object.fromEntries(LISTS.map((name) => [name, list(name)])),
    min_age_ms: writeDuration(Number(scope.min_age_ms ?? 0)),
    min_samples: String(scope.min_samples ?? SCOPE_DEFAULTS.min_samples),
    min_gpus: String(scope.min_gpus ?? SCOPE_DEFAULTS.min_gpus),
    quantifier: QUANTIFIERS.find((quantifier) => quantifier === scope.quantifier) ?? "each",
    share: typeof share === "number" ? String(Number((share * 100).toFixed(4))) : SCOPE_DEFAULTS.share,
  };
}

/** The scope as a document has it, or what is wrong with the fields. */
export function readScope(fields: ScopeFields): Readonly<Record<string, unknown>> | RuleFault {
  const age = readDuration(fields.min_age_ms);
  if (age === null)
    return fault("scope.min_age_ms", `${quote(fields.min_age_ms)} is not a duration; write 10m or 1h30m`);
  const numbers: Record<string, number> = {};
  for (const name of ["min_samples", "min_gpus", "share"] as const) {
    const number = Number(fields[name]);
    if (name === "share" && fields.quantifier !== "share") continue;
    if (fields[name].trim() === "" || !Number.isFinite(number)) {
      return fault(`scope.${name}`, `${quote(fields[name])} is not a number`);
    }
    numbers[name] = number;
  }
  const { share, ...counts } = numbers;
  const lists = LISTS.map((name) => [
    name,
    fields[name]
      .split(",")
      .map((part) => part.trim())
      .filter(Boolean),
  ]);
  return {
    ...Object.fromEntries(lists),
    ...counts,
    min_age_ms: age,
    quantifier: fields.quantifier,
    share: share === undefined ? null : share / 100,
  };
}

function fault(path: string, message: string): RuleFault {
  return { path, message, hint: null };
}

export function isFault(value: Readonly<Record<string, unknown>> | RuleFault): value is RuleFault {
  return "message" in value;
}

function quote(text: string): string {
  return `“${text.slice(0, 40)}”`;
}

const UNITS_MS: readonly (readonly [string, number])[] = [
  ["d", DAY_MS],
  ["h", HOUR_MS],
  ["m", MINUTE_MS],
  ["s", 1000],
];

/** `1h30m`; exact to the second. */
export function writeDuration(ms: number): string {
  let rest = Math.round(ms / 1000) * 1000;
  let text = "";
  for (const [unit, size] of UNITS_MS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) text += `${count}${unit}`;
  }
  return text === "" ? "0s" : text;
}

/** Null where it is none; a bare 0 is one. */
export function readDuration(text: string): number | null {
  const compact = text.replaceAll(/\s+/g, "").toLowerCase().replaceAll("min", "m");
  if (compact === "0") return 0;
  if (!/^(\d+(\.\d+)?[dhms])+$/.test(compact)) return null;
  let total = 0;
  for (const [, number, unit] of compact.matchAll(/(\d+(?:\.\d+)?)([dhms])/g)) {
    total += Number(number) * (UNITS_MS.find(([name]) => name === unit)?.[1] ?? 0);
  }
  return Math.round(total);
}
