// The grammar of search boxes: words that must all be found, and comparisons such as `user=ada`, `gpus>8`, `util<20%`.
// The same in every view; the caller defines the names.

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

/** The tooltip of search boxes. */
export const SEARCH_HINT = "Words, or comparisons such as user=ada and gpus>8; all must match";

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

type CellValue = string | number | null | undefined;

/** Numbers are compared as numbers, `20%` as 0.2; everything else as text, ignoring case. */
export function matchesComparison(
  cell: CellValue,
  { operator, value }: Pick<Comparison, "operator" | "value">,
): boolean {
  if (cell === null || cell === undefined) return false;
  const [a, b] = [typeof cell === "number" ? cell : parseNumber(cell), parseNumber(value)];
  const order = a !== null && b !== null ? a - b : String(cell).toLowerCase().localeCompare(value);
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
 * Returns whether a row matches. `words`: all searchable texts of a row; `read`: the value of a name, undefined if the
 * name is unknown, which matches no row.
 */
export function makeSearch<Row>(
  text: string,
  words: (row: Row) => readonly (string | null | undefined)[],
  read: (row: Row, name: string) => CellValue,
): (row: Row) => boolean {
  const search = parseSearch(text);
  return (row) => {
    if (!search.comparisons.every((comparison) => matchesComparison(read(row, comparison.name), comparison)))
      return false;
    if (search.words.length === 0) return true;
    const searched = words(row).filter(Boolean).join("\n").toLowerCase();
    return search.words.every((word) => searched.includes(word));
  };
}
