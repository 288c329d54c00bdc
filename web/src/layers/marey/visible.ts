// Which slots of a layer are on visible rows: slots are ordered by row, so the slots of some rows are one contiguous
// range.

import type { BandMarks, RowPlaces, SpanMarks } from "./marks.ts";

/** From the first slot to behind the last. */
export type Stretch = readonly [from: number, to: number];

/** Slots by row. Slots of row r begin at `first[r]`; what begins on a row above may reach down to it from `reaching[r]` on. */
export interface RowSlots {
  readonly first: Uint32Array;
  readonly reaching: Uint32Array;
}

const NO_SLOTS: Stretch = [0, 0];

/** Marks come row by row. */
export function indexSpans({ count, row }: SpanMarks): RowSlots {
  const first = countRows(count, row, mostRow(count, row));
  return { first, reaching: first };
}

export interface OrderedBands extends RowSlots {
  /** By slot: which band lies in it. Those of one row stay as they came. */
  readonly order: Uint32Array;
}

/** Bands by the upper of their two rows. */
export function orderBands({ count, fromRow, toRow }: BandMarks): OrderedBands {
  const upper = new Uint16Array(count);
  for (let band = 0; band < count; band += 1) upper[band] = Math.min(fromRow[band] ?? 0, toRow[band] ?? 0);
  const first = countRows(count, upper, Math.max(mostRow(count, fromRow), mostRow(count, toRow)));
  const next = first.slice();
  const order = new Uint32Array(count);
  const lowest = new Uint16Array(first.length);
  for (let band = 0; band < count; band += 1) {
    const row = upper[band] ?? 0;
    const slot = next[row] ?? 0;
    order[slot] = band;
    next[row] = slot + 1;
    lowest[row] = Math.max(lowest[row] ?? 0, fromRow[band] ?? 0, toRow[band] ?? 0);
  }
  return { first, reaching: findReaching(first, lowest), order };
}

function mostRow(count: number, rows: ArrayLike<number>): number {
  let most = -1;
  for (let mark = 0; mark < count; mark += 1) most = Math.max(most, rows[mark] ?? 0);
  return most;
}

/** By row, and behind the last: how many marks lie above it. */
function countRows(count: number, rows: ArrayLike<number>, last: number): Uint32Array {
  const first = new Uint32Array(last + 2);
  for (let mark = 0; mark < count; mark += 1) {
    const row = (rows[mark] ?? 0) + 1;
    first[row] = (first[row] ?? 0) + 1;
  }
  for (let row = 1; row < first.length; row += 1) first[row] = (first[row] ?? 0) + (first[row - 1] ?? 0);
  return first;
}

/** For each row the first slot of the highest row from which a band comes down to it or farther. */
function findReaching(first: Uint32Array, lowest: Uint16Array): Uint32Array {
  const reaching = first.slice();
  let filled = 0;
  for (let row = 0; row < lowest.length; row += 1) {
    const reach = Math.min(lowest[row] ?? 0, reaching.length - 1);
    // Rows that a band from farther above reaches have a lower slot already.
    for (let below = Math.max(row, filled) + 1; below <= reach; below += 1) reaching[below] = first[row] ?? 0;
    filled = Math.max(filled, reach);
  }
  return reaching;
}

/** Slots of what is on the rows from `fromRow` to `toRow`, or passes over them. */
export function findSlots({ first, reaching }: RowSlots, fromRow: number, toRow: number): Stretch {
  const rows = first.length - 1;
  if (rows <= 0 || toRow < fromRow || fromRow >= rows) return NO_SLOTS;
  return [reaching[fromRow] ?? 0, first[Math.min(rows, toRow + 1)] ?? 0];
}

/** First and last row that is visible, including the gap below it; `from` and `to` in page pixels before scrolling. */
export function findRows({ top, height }: RowPlaces, from: number, to: number): readonly [first: number, last: number] {
  let first = 0;
  // A row ends where the next one begins: bands are drawn between them.
  while (first + 1 < top.length && (top[first + 1] ?? 0) <= from) first += 1;
  let last = top.length - 1;
  while (last > first && (top[last] ?? 0) >= to) last -= 1;
  const isNone = top.length === 0 || (first === top.length - 1 && (top[first] ?? 0) + (height[first] ?? 0) <= from);
  return isNone ? [0, -1] : [first, last];
}
