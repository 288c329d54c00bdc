// Finds the square at a point, and the next one in a direction, on the CPU: a grid of cells with the slots in each.

import type { Places } from "./marks.ts";

/** Sides of a unit; two to three squares a cell. */
const CELL = 2;

export type Direction = "left" | "right" | "up" | "down";

const STEPS: Readonly<Record<Direction, readonly [dx: number, dy: number]>> = {
  left: [-1, 0],
  right: [1, 0],
  up: [0, -1],
  down: [0, 1],
};

function clamp(cell: number, cells: number): number {
  return Math.min(cells - 1, Math.max(0, cell));
}

/** How much more a step aside counts than a step ahead. */
const ASIDE_WEIGHT = 3;

export class PickGrid {
  readonly #places: Places;
  readonly #columns: number;
  readonly #rows: number;
  /** Slots by cell: those of cell c are `slots[starts[c]] … slots[starts[c + 1] − 1]`. */
  readonly #starts: Uint32Array;
  readonly #slots: Uint32Array;

  constructor(places: Places, bounds: { readonly width: number; readonly height: number }) {
    this.#places = places;
    this.#columns = Math.max(1, Math.ceil(bounds.width / CELL));
    this.#rows = Math.max(1, Math.ceil(bounds.height / CELL));
    this.#starts = new Uint32Array(this.#columns * this.#rows + 1);
    const { size } = places;
    for (let slot = 0; slot < size.length; slot += 1) {
      if ((size[slot] ?? 0) > 0) this.#count(this.#cellOf(slot) + 1);
    }
    for (let cell = 1; cell < this.#starts.length; cell += 1) {
      this.#starts[cell] = (this.#starts[cell] ?? 0) + (this.#starts[cell - 1] ?? 0);
    }
    this.#slots = new Uint32Array(this.#starts[this.#starts.length - 1] ?? 0);
    const next = this.#starts.slice();
    for (let slot = 0; slot < size.length; slot += 1) {
      if ((size[slot] ?? 0) <= 0) continue;
      const cell = this.#cellOf(slot);
      const at = next[cell] ?? 0;
      this.#slots[at] = slot;
      next[cell] = at + 1;
    }
  }

  /** The slot whose square holds the point, in the units of the layout. */
  find(x: number, y: number): number | null {
    const column = Math.floor(x / CELL);
    const row = Math.floor(y / CELL);
    // A square may begin in the cell before.
    for (let cellRow = row - 1; cellRow <= row; cellRow += 1) {
      for (let cellColumn = column - 1; cellColumn <= column; cellColumn += 1) {
        if (cellColumn < 0 || cellRow < 0 || cellColumn >= this.#columns || cellRow >= this.#rows) continue;
        const slot = this.#findInCell(cellRow * this.#columns + cellColumn, x, y);
        if (slot !== null) return slot;
      }
    }
    return null;
  }

  /** The slots whose squares may touch a rectangle: all that do, and a few next to it. */
  listWithin(left: number, top: number, right: number, bottom: number): Uint32Array {
    const firstColumn = clamp(Math.floor(left / CELL) - 1, this.#columns);
    const lastColumn = clamp(Math.floor(right / CELL), this.#columns);
    const firstRow = clamp(Math.floor(top / CELL) - 1, this.#rows);
    const lastRow = clamp(Math.floor(bottom / CELL), this.#rows);
    // The cells of a row of the grid are neighbors, and so are their slots.
    const startOf = (row: number) => this.#starts[row * this.#columns + firstColumn] ?? 0;
    const endOf = (row: number) => this.#starts[row * this.#columns + lastColumn + 1] ?? 0;
    let count = 0;
    for (let row = firstRow; row <= lastRow; row += 1) count += endOf(row) - startOf(row);
    const slots = new Uint32Array(count);
    let at = 0;
    for (let row = firstRow; row <= lastRow; row += 1) {
      slots.set(this.#slots.subarray(startOf(row), endOf(row)), at);
      at += endOf(row) - startOf(row);
    }
    return slots;
  }

  /** How many squares there are. */
  get count(): number {
    return this.#slots.length;
  }

  /** The nearest square in a direction, straight ahead before aside; null at the edge. */
  findNext(slot: number, direction: Direction): number | null {
    const { x, y, size } = this.#places;
    const [dx, dy] = STEPS[direction];
    const fromX = x[slot] ?? 0;
    const fromY = y[slot] ?? 0;
    const half = (size[slot] ?? 1) / 2;
    let best: number | null = null;
    let bestCost = Number.POSITIVE_INFINITY;
    for (const other of this.#slots) {
      const alongX = (x[other] ?? 0) - fromX;
      const alongY = (y[other] ?? 0) - fromY;
      const ahead = alongX * dx + alongY * dy;
      if (ahead < half) continue;
      const cost = ahead + ASIDE_WEIGHT * Math.abs(alongX * dy + alongY * dx);
      if (cost >= bestCost) continue;
      bestCost = cost;
      best = other;
    }
    return best;
  }

  #count(cell: number): void {
    this.#starts[cell] = (this.#starts[cell] ?? 0) + 1;
  }

  #cellOf(slot: number): number {
    const column = Math.min(this.#columns - 1, Math.floor((this.#places.x[slot] ?? 0) / CELL));
    const row = Math.min(this.#rows - 1, Math.floor((this.#places.y[slot] ?? 0) / CELL));
    return row * this.#columns + column;
  }

  #findInCell(cell: number, x: number, y: number): number | null {
    const { x: lefts, y: tops, size } = this.#places;
    for (let at = this.#starts[cell] ?? 0; at < (this.#starts[cell + 1] ?? 0); at += 1) {
      const slot = this.#slots[at] ?? 0;
      const side = size[slot] ?? 0;
      const left = lefts[slot] ?? 0;
      const top = tops[slot] ?? 0;
      if (x >= left && x < left + side && y >= top && y < top + side) return slot;
    }
    return null;
  }
}
