// What is typed into a box that filters: words that must all be found, and comparisons such as `user=ada`, `gpus>8`, `util<20%`.
// The same in every view; what the names mean is the caller's.

import { qualifyWorkload } from "./workload-id.ts";

export type Operator = "=" | "!=" | "<" | "<=" | ">" | ">=";

export interface Comparison {
  readonly name: string;
  readonly operator: Operator;
  readonly value: string;
}

export interface Search {
  /** In lower case. */
  readonly words: readonly string[];
  readonly comparisons: readonly Comparison[];
}

/** What boxes that filter say of themselves. */
export const SEARCH_HINT = "Words, or comparisons such as user=ada and gpus>8; all must hold";

const COMPARISON = /^([^<>=!]+)(<=|>=|!=|=|<|>)(.+)$/;

export function parseSearch(text: string): Search {
  const words: string[] = [];
  const comparisons: Comparison[] = [];
  for (const word of text.trim().toLowerCase().split(/\s+/).filter(Boolean)) {
    const [, name, operator, value] = COMPARISON.exec(word) ?? [];
    if (name === undefined || value === undefined) words.push(word);
    else
      comparisons.push({
        name,
        operator: operator as Operator,
        value: name === "workload" ? qualifyWorkload(value) : value,
      });
  }
  return { words, comparisons };
}

type Known = string | number | null | undefined;

/** Numbers are compared as numbers, `20%` as 0.2; all else as text, whatever its case. */
export function isSo(known: Known, { operator, value }: Pick<Comparison, "operator" | "value">): boolean {
  if (known === null || known === undefined) return false;
  const [a, b] = [typeof known === "number" ? known : parseNumber(known), parseNumber(value)];
  const order = a !== null && b !== null ? a - b : String(known).toLowerCase().localeCompare(value);
  switch (operator) {
    case "=":
      return order === 0;
    case "!=":
      return order !== 0;
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
  }
}

export function parseNumber(text: string): number | null {
  const [, digits, percent] = /^\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(%?)\s*$/i.exec(text) ?? [];
  if (digits === undefined) return null;
  return Number(digits) / (percent ? 100 : 1);
}

/**
 * Whether a row is meant. `words`: all that is searched of a row, in any case; `read`: what a name stands for, undefined where it
 * stands for nothing: then no row is meant.
 */
export function makeSearch<Row>(
  text: string,
  words: (row: Row) => readonly (string | null | undefined)[],
  read: (row: Row, name: string) => Known,
): (row: Row) => boolean {
  const search = parseSearch(text);
  return (row) => {
    if (!search.comparisons.every((comparison) => isSo(read(row, comparison.name), comparison))) return false;
    if (search.words.length === 0) return true;
    const searched = words(row).filter(Boolean).join("\n").toLowerCase();
    return search.words.every((word) => searched.includes(word));
  };
}
