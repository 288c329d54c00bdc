// Chooses which of many names to list: the most frequent, matches of the search, chosen ones, and a count of the rest.
// Linear in the number of names. Pure.

import { lowerNames } from "./apply-where.ts";

export interface TopNames {
  /** Most rows first, the missing last. */
  readonly codes: readonly number[];
  /** How many names there are in all. */
  readonly distinct: number;
  /** Those that were found but are not listed, and their rows. */
  readonly otherNames: number;
  readonly otherCount: number;
}

export interface NamesToList {
  readonly names: readonly (string | null)[];
  /** Better words, by code. */
  readonly titles?: readonly (string | null)[] | null;
  /** Rows by code: names without any are listed only where they are chosen. */
  readonly counts: Uint32Array;
  /** Always listed. */
  readonly chosen: readonly (string | null)[];
  readonly text: string;
  readonly most: number;
}

export function listTopNames({ names, titles = null, counts, chosen, text, most }: NamesToList): TopNames {
  const needle = text.trim().toLowerCase();
  const lower = needle === "" ? null : lowerNames(names);
  const isChosen = new Set(chosen);
  const always: number[] = [];
  const top: number[] = [];
  let distinct = 0;
  let matchCount = 0;
  let matchSum = 0;
  for (let code = 0; code < names.length; code += 1) {
    const count = counts[code] ?? 0;
    const isPicked = isChosen.size > 0 && isChosen.has(names[code] ?? null);
    if (count === 0 && !isPicked) continue;
    if (code > 0) distinct += 1;
    if (lower !== null && !lower[code]?.includes(needle) && !titles?.[code]?.toLowerCase().includes(needle)) continue;
    matchCount += 1;
    matchSum += count;
    if (isPicked || code === 0) always.push(code);
    else insertTop(top, code, counts, most);
  }
  // The missing have no place among the names.
  const rank = (code: number) => (code === 0 ? -1 : (counts[code] ?? 0));
  const codes = [...always, ...top].sort((a, b) => rank(b) - rank(a) || a - b);
  const listed = codes.reduce((sum, code) => sum + (counts[code] ?? 0), 0);
  return { codes, distinct, otherNames: matchCount - codes.length, otherCount: matchSum - listed };
}

/** Keeps the `most` codes with the greatest counts, in order, without sorting them all. */
function insertTop(top: number[], code: number, counts: Uint32Array, most: number): void {
  const count = counts[code] ?? 0;
  if (top.length === most && count <= (counts[top[most - 1] ?? 0] ?? 0)) return;
  let place = top.length;
  while (place > 0 && (counts[top[place - 1] ?? 0] ?? 0) < count) place -= 1;
  top.splice(place, 0, code);
  if (top.length > most) top.pop();
}
