// Sorts rows by a key: numbers by size, text in natural order (gpu-9 before gpu-10), missing values always last.
// Stable.

export type SortKey = number | string | null;

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** The indices 0…keys.length−1 in order. Each distinct text is ranked once, so that comparing rows compares numbers. */
export function computeOrder(keys: readonly SortKey[], descending: boolean): Uint32Array<ArrayBuffer> {
  const ranks = computeRanks(keys);
  const order = new Uint32Array(keys.length).map((_, index) => index);
  const direction = descending ? -1 : 1;
  return order.sort((a, b) => {
    const x = ranks[a] ?? Number.NaN;
    const y = ranks[b] ?? Number.NaN;
    if (x === y) return a - b;
    if (Number.isNaN(x)) return Number.isNaN(y) ? a - b : 1;
    if (Number.isNaN(y)) return -1;
    return direction * (x < y ? -1 : 1);
  });
}

/** NaN is missing. A column holds either numbers or text. */
function computeRanks(keys: readonly SortKey[]): Float64Array {
  const words = [...new Set(keys.filter((key) => typeof key === "string"))].sort(compareWords);
  const rankOf = new Map(words.map((word, rank) => [word, rank]));
  const ranks = new Float64Array(keys.length);
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index] ?? null;
    ranks[index] = typeof key === "string" ? (rankOf.get(key) ?? Number.NaN) : (key ?? Number.NaN);
  }
  return ranks;
}

export function compareWords(a: string, b: string): number {
  return collator.compare(a, b) || (a < b ? -1 : a > b ? 1 : 0);
}
