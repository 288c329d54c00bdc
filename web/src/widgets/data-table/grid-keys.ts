// Keyboard navigation in a list of rows.

export interface GridMove {
  readonly index: number;
  readonly count: number;
  /** Visible rows, for Page Up and Page Down. */
  readonly page: number;
}

/** The row a key leads to, or null where the key means nothing here. */
export function findMove(key: string, { index, count, page }: GridMove): number | null {
  const target = moveTarget(key, index, count, page);
  return target === null || count === 0 ? null : Math.min(count - 1, Math.max(0, target));
}

function moveTarget(key: string, index: number, count: number, page: number): number | null {
  switch (key) {
    case "ArrowDown":
      return index + 1;
    case "ArrowUp":
      return index < 0 ? 0 : index - 1;
    case "PageDown":
      return index + page;
    case "PageUp":
      return index - page;
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return null;
  }
}
