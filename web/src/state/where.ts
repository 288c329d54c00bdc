// Which units, workloads or nodes are meant, as a link says it: conditions on attributes, all of which must hold, each
// with alternatives. `where=gpu_util_ratio:0..0.15&where=!user:ada,bob&where=node~rack7`.
//
//   where      one for each clause; all clauses must hold
//   clause     condition | condition …              any of them
//   condition  attribute:name,name  attribute:0..1  attribute~text   with ! before it: the contrary
//   name       as it is; `~` alone: those without one; \ before \ , | and before a ~ that is a name

import { type AttributeName, findAttribute, type NameAttributeName } from "./attributes.ts";
import { parseRange, type Range, serializeRange } from "./range.ts";

/** Null: no name. */
export type WantedName = string | null;

export interface NamesCondition {
  readonly kind: "names";
  readonly attribute: NameAttributeName;
  /** Any of them; in order, each once. */
  readonly names: readonly WantedName[];
  readonly isNegated: boolean;
}

export interface TextCondition {
  readonly kind: "text";
  readonly attribute: NameAttributeName;
  readonly text: string;
  readonly isNegated: boolean;
}

/** Missing values are neither inside nor outside a range. */
export interface RangeCondition extends Range {
  readonly kind: "range";
  readonly attribute: AttributeName;
  readonly isNegated: boolean;
}

export type Condition = NamesCondition | TextCondition | RangeCondition;
/** Any of them holds. Never empty. */
export type Clause = readonly Condition[];
/** All of them hold. */
export type Where = readonly Clause[];

/** An upper bound that keeps links and filters readable. */
export const MOST_CLAUSES = 24;
const MOST_ALTERNATIVES = 12;
const MAX_QUOTED = 60;

export const WHERE_KEY = "where";

export function namesCondition(
  attribute: NameAttributeName,
  names: readonly WantedName[],
  isNegated = false,
): NamesCondition {
  const words = names.filter((name) => name !== null && name !== "");
  const sorted: WantedName[] = [...new Set(words)].sort();
  return { kind: "names", attribute, names: names.includes(null) ? [null, ...sorted] : sorted, isNegated };
}

export function rangeCondition(attribute: AttributeName, { min, max }: Range, isNegated = false): RangeCondition {
  return { kind: "range", attribute, min, max, isNegated };
}

export function parseWhere(texts: readonly string[], notices: string[]): Where {
  const where = texts.flatMap((text): readonly Clause[] => {
    const clause = splitEscaped(text, "|").flatMap((part) => {
      const condition = parseCondition(part);
      if (typeof condition !== "string") return [condition];
      notices.push(`The link filters by ${quote(part)}: ${condition} It was ignored.`);
      return [];
    });
    return clause.length > 0 ? [clause.slice(0, MOST_ALTERNATIVES)] : [];
  });
  if (where.length > MOST_CLAUSES)
    notices.push(`The link has more than ${MOST_CLAUSES} conditions; the rest were ignored.`);
  return where.slice(0, MOST_CLAUSES);
}

/** The condition, or why it is invalid. */
function parseCondition(text: string): Condition | string {
  const [, not, name = "", operator, value = ""] =
    /^(!?)(rule:[a-z0-9][a-z0-9_-]*|[a-z0-9_]+(?::(?:mean|p5|p50|p95|min|max)(?=[:~]))?)([:~])?(.*)$/s.exec(text) ?? [];
  const attribute = findAttribute(name);
  if (attribute === null) return `there is no attribute ${quote(name || text)}.`;
  const isNegated = not === "!";
  if (attribute.kind === "number") {
    const range = operator === ":" ? parseRange(value) : null;
    return range
      ? rangeCondition(attribute.name, range, isNegated)
      : "a numeric attribute needs a range such as 0..0.5.";
  }
  if (operator === "~" && value !== "")
    return { kind: "text", attribute: attribute.name, text: unescapeMarks(value), isNegated };
  if (operator !== ":" || value === "") return "a condition needs “:” and names, or “~” and a text.";
  const names = splitEscaped(value, ",").map((part) => (part === "~" ? null : unescapeMarks(part)));
  const unknown = names.filter((wanted) => wanted !== null && attribute.values?.includes(wanted) === false);
  if (unknown.length > 0) return `there is no ${attribute.title.toLowerCase()} ${quote(unknown.join(", "))}.`;
  const condition = namesCondition(attribute.name, names, isNegated);
  return condition.names.length > 0 ? condition : "it has no names.";
}

export function serializeWhere(where: Where): readonly string[] {
  return where.map((clause) => clause.map(serializeCondition).join("|"));
}

export function serializeCondition(condition: Condition): string {
  const not = condition.isNegated ? "!" : "";
  switch (condition.kind) {
    case "names":
      return `${not}${condition.attribute}:${condition.names.map(writeName).join(",")}`;
    case "text":
      return `${not}${condition.attribute}~${escapeMarks(condition.text)}`;
    case "range":
      return `${not}${condition.attribute}:${serializeRange(condition)}`;
  }
}

function writeName(name: WantedName): string {
  if (name === null) return "~";
  return name === "~" ? "\\~" : escapeMarks(name);
}

function escapeMarks(text: string): string {
  return text.replace(/[\\,|]/g, "\\$&");
}

function unescapeMarks(text: string): string {
  return text.replace(/\\(.)/gs, "$1");
}

/** Splits at unescaped marks; backslashes stay. */
function splitEscaped(text: string, mark: string): readonly string[] {
  const parts: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === mark) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return [...parts, text.slice(start)];
}

function quote(text: string): string {
  return `“${text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text}”`;
}

/** The clause that only selects names of an attribute: the one that facets and legends change. */
export function findNames(where: Where, attribute: NameAttributeName): readonly WantedName[] {
  const condition = where[findClause(where, attribute, "names")]?.[0];
  return condition?.kind === "names" ? condition.names : [];
}

export function findRange(where: Where, attribute: AttributeName): Range | null {
  const condition = where[findClause(where, attribute, "range")]?.[0];
  return condition?.kind === "range" ? condition : null;
}

/** −1 where there is none. */
export function findClause(where: Where, attribute: AttributeName, kind: Condition["kind"]): number {
  return where.findIndex((clause) => {
    const [condition] = clause;
    return clause.length === 1 && condition?.attribute === attribute && condition.kind === kind && !condition.isNegated;
  });
}

/** Replaces or removes the clause at `at`; past the end it is added. */
export function replaceClause(where: Where, at: number, clause: Clause | null): Where {
  const place = at < 0 ? where.length : at;
  return [...where.slice(0, place), ...(clause ? [clause] : []), ...where.slice(place + 1)];
}

export function withNames(where: Where, attribute: NameAttributeName, names: readonly WantedName[]): Where {
  const condition = namesCondition(attribute, names);
  const at = findClause(where, attribute, "names");
  return at < 0 && condition.names.length === 0
    ? where
    : replaceClause(where, at, condition.names.length > 0 ? [condition] : null);
}

export function withRange(where: Where, attribute: AttributeName, range: Range | null): Where {
  const isOpen = range === null || (range.min === null && range.max === null);
  const at = findClause(where, attribute, "range");
  if (at < 0 && isOpen) return where;
  return replaceClause(where, at, isOpen ? null : [rangeCondition(attribute, range)]);
}
