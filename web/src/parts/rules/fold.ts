// What of an ordered row is shown where not all of it fits: the most severe, in their own order. Pure.

/** Lower ranks go first; of equal ones the last go. `moreSize`: what the sign for the rest takes. Places, ascending. */
export function foldRow(
  sizes: readonly number[],
  ranks: readonly number[],
  room: number,
  gap: number,
  moreSize: number,
): readonly number[] {
  const all = sizes.map((_, place) => place);
  if (sumSizes(sizes, gap) <= room) return all;
  const byRank = [...all].sort((a, b) => (ranks[a] ?? 0) - (ranks[b] ?? 0) || a - b);
  const shown: number[] = [];
  let used = moreSize;
  for (const place of byRank) {
    const size = (sizes[place] ?? 0) + gap;
    if (used + size > room) break;
    used += size;
    shown.push(place);
  }
  return shown.sort((a, b) => a - b);
}

function sumSizes(sizes: readonly number[], gap: number): number {
  return sizes.reduce((sum, size) => sum + size, 0) + gap * Math.max(0, sizes.length - 1);
}
