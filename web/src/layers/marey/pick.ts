// Finds the span under a point, and the next one in a direction, on the CPU: the spans of each row by their start.

export interface PickedSpans {
  readonly count: number;
  readonly row: ArrayLike<number>;
  readonly startNs: ArrayLike<number>;
  readonly endNs: ArrayLike<number>;
}

interface Row {
  /** Spans by start. */
  readonly spans: Uint32Array;
  /** The latest end of all spans up to here: nothing before can reach further. */
  readonly reach: Float64Array;
}

export class SpanIndex {
  readonly #spans: PickedSpans;
  readonly #rows: readonly Row[];

  constructor(spans: PickedSpans, rowCount: number) {
    this.#spans = spans;
    const lists: number[][] = Array.from({ length: rowCount }, () => []);
    for (let span = 0; span < spans.count; span += 1) lists[spans.row[span] ?? 0]?.push(span);
    this.#rows = lists.map((list) => this.#order(list));
  }

  /** The shortest span that holds the time, or the nearest within `slackNs`. */
  find(row: number, timeNs: number, slackNs: number): number | null {
    const { spans, reach } = this.#rows[row] ?? EMPTY;
    let best: number | null = null;
    let bestScore = Number.POSITIVE_INFINITY;
    for (let at = this.#countUntil(row, timeNs + slackNs) - 1; at >= 0; at -= 1) {
      if ((reach[at] ?? 0) < timeNs - slackNs) break;
      const span = spans[at] ?? 0;
      const [start, end] = this.#extent(span);
      const away = Math.max(0, start - timeNs, timeNs - end);
      if (away > slackNs) continue;
      // Spans that contain the time come before those near it; among them the shortest is on top.
      const score = away > 0 ? 1e18 + away : end - start;
      if (score < bestScore) [best, bestScore] = [span, score];
    }
    return best;
  }

  /** The next span of the same row, in time. */
  findNeighbor(span: number, step: 1 | -1): number | null {
    const { spans } = this.#rows[this.#spans.row[span] ?? 0] ?? EMPTY;
    return spans[spans.indexOf(span) + step] ?? null;
  }

  /** The span of the next row that has one, nearest to the middle of this one. */
  findBeside(span: number, step: 1 | -1): number | null {
    const [start, end] = this.#extent(span);
    const middle = (start + end) / 2;
    for (let row = (this.#spans.row[span] ?? 0) + step; row >= 0 && row < this.#rows.length; row += step) {
      const nearest = this.#findNearest(row, middle);
      if (nearest !== null) return nearest;
    }
    return null;
  }

  /** The first span that begins at or after a time, in the first row that has one. */
  findFirst(timeNs: number): number | null {
    for (let row = 0; row < this.#rows.length; row += 1) {
      const first = this.#rows[row]?.spans[this.#countUntil(row, timeNs)];
      if (first !== undefined) return first;
    }
    return null;
  }

  #findNearest(row: number, timeNs: number): number | null {
    const { spans } = this.#rows[row] ?? EMPTY;
    const at = this.#countUntil(row, timeNs);
    const [before, after] = [spans[at - 1], spans[at]];
    if (before === undefined) return after ?? null;
    if (after === undefined) return before;
    const away = (span: number) => {
      const [start, end] = this.#extent(span);
      return Math.max(0, start - timeNs, timeNs - end);
    };
    return away(before) <= away(after) ? before : after;
  }

  #extent(span: number): [number, number] {
    return [this.#spans.startNs[span] ?? 0, this.#spans.endNs[span] ?? 0];
  }

  /** How many spans of the row begin at or before a time. */
  #countUntil(row: number, timeNs: number): number {
    const { spans } = this.#rows[row] ?? EMPTY;
    let [low, high] = [0, spans.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#spans.startNs[spans[middle] ?? 0] ?? 0) <= timeNs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #order(list: number[]): Row {
    const { startNs, endNs } = this.#spans;
    let isOrdered = true;
    for (let at = 1; at < list.length && isOrdered; at += 1) {
      isOrdered = (startNs[list[at - 1] ?? 0] ?? 0) <= (startNs[list[at] ?? 0] ?? 0);
    }
    if (!isOrdered) list.sort((a, b) => (startNs[a] ?? 0) - (startNs[b] ?? 0));
    const reach = new Float64Array(list.length);
    let furthest = Number.NEGATIVE_INFINITY;
    list.forEach((span, at) => {
      furthest = Math.max(furthest, endNs[span] ?? 0);
      reach[at] = furthest;
    });
    return { spans: Uint32Array.from(list), reach };
  }
}

const EMPTY: Row = { spans: new Uint32Array(), reach: new Float64Array() };
