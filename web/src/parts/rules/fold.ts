// Which entries of a list are shown if not all fit into the available lines: those with the highest rank, in their own
// order. Pure.

interface Room {
  /** Of one line. */
  readonly width: number;
  readonly lines: number;
  readonly gap: number;
  /** What the sign for the rest takes from each line; nothing where there is no rest. */
  readonly more: number;
}

/** Lower ranks go first; of equal ones the last go. Places, ascending. */
export function foldLines(sizes: readonly number[], ranks: readonly number[], room: Room): readonly number[] {
  const all = sizes.map((_, place) => place);
  if (fits(sizes, room.width, room)) return all;
  const byRank = [...all].sort((a, b) => (ranks[a] ?? 0) - (ranks[b] ?? 0) || a - b);
  let shown: readonly number[] = [];
  for (const place of byRank) {
    const next = [...shown, place].sort((a, b) => a - b);
    const nextSizes = next.map((at) => sizes[at] ?? 0);
    if (!fits(nextSizes, room.width - room.more, room)) break;
    shown = next;
  }
  return shown;
}

/** Set one after the other, a new line where the next does not fit: as the browser wraps. */
function fits(sizes: readonly number[], width: number, { lines, gap }: Room): boolean {
  let line = 1;
  let used = 0;
  for (const size of sizes) {
    const after = used === 0 ? size : used + gap + size;
    if (after <= width) {
      used = after;
      continue;
    }
    line += 1;
    used = size;
    if (line > lines || size > width) return false;
  }
  return true;
}
