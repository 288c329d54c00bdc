// Which rows meet the conditions, computed column by column. Records for each row the only clause that it fails, so
// that facets can count what choosing a value would show.

import type { NumberColumn } from "../../../api/columns.ts";
import { parseSearch } from "../../../base/search.ts";
import type { Clause, Condition, RangeCondition, Where } from "../../../state/where.ts";
import { applyComparison } from "./apply-search.ts";
import { type FilterColumns, isLists, isNumbers, type NamedColumn } from "./filter-columns.ts";

export interface Narrowed {
  readonly rowCount: number;
  /** How many clauses each row fails; the search is one of them. Null where there is nothing to fail. */
  readonly failures: Uint8Array | null;
  /** The last clause each row fails: where it fails one only, that one. */
  readonly culprit: Uint8Array;
  /** Of each clause, whether these rows have its attributes. Clauses that they cannot be judged by are not applied. */
  readonly isApplied: readonly boolean[];
}

/** What the search and the limits of the selection count as among the clauses. */
const SEARCH = 255;
const WITHIN = 254;
const MOST_WORDS = 31;

/** `within`: 1 for each row that may be shown at all; null: all. */
export function applyWhere(
  columns: FilterColumns,
  where: Where,
  text: string,
  within: Uint8Array | null = null,
): Narrowed {
  const { rowCount } = columns;
  const isApplied = where.map((clause) => clause.every(({ attribute }) => columns.has(attribute)));
  const search = parseSearch(text);
  const words = search.words.slice(0, MOST_WORDS);
  const isSearched = words.length + search.comparisons.length > 0;
  const culprit = new Uint8Array(rowCount);
  if (!isSearched && within === null && !isApplied.includes(true))
    return { rowCount, failures: null, culprit, isApplied };
  const failures = new Uint8Array(rowCount);
  const passes = new Uint8Array(rowCount);
  where.forEach((clause, index) => {
    if (!isApplied[index]) return;
    passes.fill(0);
    passClause(columns, clause, passes);
    countFailures(passes, index, failures, culprit);
  });
  if (isSearched) {
    passes.fill(words.length > 0 ? 0 : 1);
    if (words.length > 0) passWords(columns.searched, words, passes);
    for (const comparison of search.comparisons) applyComparison(columns, comparison, passes);
    countFailures(passes, SEARCH, failures, culprit);
  }
  if (within !== null) countFailures(within, WITHIN, failures, culprit);
  return { rowCount, failures, culprit, isApplied };
}

function countFailures(passes: Uint8Array, clause: number, failures: Uint8Array, culprit: Uint8Array): void {
  for (let row = 0; row < passes.length; row += 1) {
    if (passes[row] === 1) continue;
    failures[row] = (failures[row] ?? 0) + 1;
    culprit[row] = clause;
  }
}

/** Marks the rows that meet any of the conditions. */
function passClause(columns: FilterColumns, clause: Clause, passes: Uint8Array): void {
  for (const condition of clause) {
    const column = columns.find(condition.attribute);
    if (column === null) continue;
    if (isNumbers(column)) {
      if (condition.kind === "range") passRange(column, condition, passes);
    } else if (condition.kind !== "range") passNames(column, condition, passes);
  }
}

function passRange(values: NumberColumn, { min, max, isNegated }: RangeCondition, passes: Uint8Array): void {
  // Metrics are 32-bit numbers: 0.15 from a link must equal 0.15 from a sample.
  const round = values instanceof Float32Array ? Math.fround : (value: number) => value;
  const from = min === null ? Number.NEGATIVE_INFINITY : round(min);
  const to = max === null ? Number.POSITIVE_INFINITY : round(max);
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row] ?? Number.NaN;
    const isInside = value >= from && value <= to;
    if (isNegated ? value < from || value > to : isInside) passes[row] = 1;
  }
}

function passNames(column: NamedColumn, condition: Exclude<Condition, RangeCondition>, passes: Uint8Array): void {
  const isWanted = markWanted(column.names, condition);
  const hit = condition.isNegated ? 0 : 1;
  const { codes } = column;
  if (!isLists(column)) {
    for (let row = 0; row < codes.length; row += 1) if (isWanted[codes[row] ?? 0] === hit) passes[row] = 1;
    return;
  }
  const { starts } = column;
  for (let row = 0; row < starts.length - 1; row += 1) {
    const start = starts[row] ?? 0;
    const end = starts[row + 1] ?? 0;
    let isMatch = start === end ? (isWanted[0] ?? 0) : 0;
    for (let at = start; at < end; at += 1) isMatch |= isWanted[codes[at] ?? 0] ?? 0;
    if (isMatch === hit) passes[row] = 1;
  }
}

/** By code. */
function markWanted(names: readonly (string | null)[], condition: Exclude<Condition, RangeCondition>): Uint8Array {
  const isWanted = new Uint8Array(names.length);
  if (condition.kind === "names") {
    const wantedNames = new Set(condition.names);
    for (let code = 0; code < names.length; code += 1) if (wantedNames.has(names[code] ?? null)) isWanted[code] = 1;
    return isWanted;
  }
  const text = condition.text.toLowerCase();
  const lower = lowerNames(names);
  for (let code = 1; code < lower.length; code += 1) if (lower[code]?.includes(text)) isWanted[code] = 1;
  return isWanted;
}

const lowered = new WeakMap<readonly (string | null)[], readonly string[]>();

/** In lower case, "" for the missing. A dictionary outlives many ticks and many typed letters. */
export function lowerNames(names: readonly (string | null)[]): readonly string[] {
  const cached = lowered.get(names);
  if (cached !== undefined) return cached;
  const lower = names.map((name) => name?.toLowerCase() ?? "");
  lowered.set(names, lower);
  return lower;
}

interface FoundWords {
  readonly key: string;
  readonly bits: Uint32Array;
}

const foundWords = new WeakMap<readonly (string | null)[], FoundWords>();

/** Marks the rows in whose names every word occurs, each in any of the columns. */
function passWords(columns: readonly NamedColumn[], words: readonly string[], passes: Uint8Array): void {
  const wordBits = new Uint32Array(passes.length);
  for (const column of columns) {
    const bits = findWords(column.names, words);
    const { codes } = column;
    if (isLists(column)) {
      for (let row = 0; row < wordBits.length; row += 1) {
        const end = column.starts[row + 1] ?? 0;
        for (let at = column.starts[row] ?? 0; at < end; at += 1) {
          wordBits[row] = (wordBits[row] ?? 0) | (bits[codes[at] ?? 0] ?? 0);
        }
      }
    } else {
      for (let row = 0; row < wordBits.length; row += 1) {
        wordBits[row] = (wordBits[row] ?? 0) | (bits[codes[row] ?? 0] ?? 0);
      }
    }
  }
  const all = 2 ** words.length - 1;
  for (let row = 0; row < wordBits.length; row += 1) if (wordBits[row] === all) passes[row] = 1;
}

/** Bit w of a code: its name has word w. */
function findWords(names: readonly (string | null)[], words: readonly string[]): Uint32Array {
  const key = words.join(" ");
  const cached = foundWords.get(names);
  if (cached?.key === key) return cached.bits;
  const lower = lowerNames(names);
  const bits = new Uint32Array(names.length);
  words.forEach((word, index) => {
    const bit = 2 ** index;
    for (let code = 1; code < lower.length; code += 1) {
      if (lower[code]?.includes(word)) bits[code] = (bits[code] ?? 0) | bit;
    }
  });
  foundWords.set(names, { key, bits });
  return bits;
}

/** 1 for each row that is left out; null where all pass. */
export function markFiltered({ failures }: Narrowed): Uint8Array | null {
  if (failures === null) return null;
  const filtered = new Uint8Array(failures.length);
  let any = 0;
  for (let row = 0; row < failures.length; row += 1) {
    const isOut = failures[row] === 0 ? 0 : 1;
    filtered[row] = isOut;
    any |= isOut;
  }
  return any === 0 ? null : filtered;
}

export function listPassing({ failures, rowCount }: Narrowed): Uint32Array {
  const rows = new Uint32Array(rowCount);
  let count = 0;
  for (let row = 0; row < rowCount; row += 1) {
    if (failures !== null && failures[row] !== 0) continue;
    rows[count] = row;
    count += 1;
  }
  return rows.subarray(0, count);
}

/**
 * How many rows have each name, by code: of those that meet every clause but `clause`, which is what choosing a name in it
 * would show. `drawn`: 1 for each row that counts at all.
 */
export function countNames(
  column: NamedColumn,
  { failures, culprit, rowCount }: Narrowed,
  clause: number,
  drawn: Uint8Array | null,
): Uint32Array {
  const counts = new Uint32Array(column.names.length);
  const { codes } = column;
  const starts = isLists(column) ? column.starts : null;
  for (let row = 0; row < rowCount; row += 1) {
    if (drawn !== null && drawn[row] === 0) continue;
    if (failures !== null) {
      const failed = failures[row] ?? 0;
      if (failed > 1 || (failed === 1 && culprit[row] !== clause)) continue;
    }
    if (starts === null) counts[codes[row] ?? 0] = (counts[codes[row] ?? 0] ?? 0) + 1;
    else {
      const end = starts[row + 1] ?? 0;
      for (let at = starts[row] ?? 0; at < end; at += 1) {
        counts[codes[at] ?? 0] = (counts[codes[at] ?? 0] ?? 0) + 1;
      }
    }
  }
  return counts;
}
