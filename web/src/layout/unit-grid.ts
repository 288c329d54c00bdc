// The grid of units in an innermost group: rows and columns of squares of side 1.

import type { Extent } from "./boxes.ts";
import type { Mark } from "./grammar.ts";

/** What a wrong shape costs against empty cells: 8 units are 4 × 2 rather than 3 × 3 with a hole. */
const SHAPE_WEIGHT = 0.15;
/** How far the number of columns may be from that of the exact shape. */
const MAX_STRETCH = 1.6;

export type UnitDirection = "rows" | "columns";

export interface UnitGrid {
  readonly columns: number;
  readonly rows: number;
}

/** Whether units go right, then down, or down, then right. */
export function directionOf(mark: Mark): UnitDirection {
  return mark.layout === "fillX" || mark.layout === "listY" ? "columns" : "rows";
}

/** `target`: the space there is, in sides of a unit; `count` at least 1. */
export function chooseGrid(mark: Mark, count: number, target: Extent): UnitGrid {
  if (mark.layout === "pack") return packGrid(count, target.width / target.height);
  const pitch = 1 + mark.padding;
  const isColumns = directionOf(mark) === "columns";
  const length = isColumns ? target.height : target.width;
  const across = Math.floor(mark.limit ?? Math.max(1, Math.round((length + mark.padding) / pitch)));
  const used = Math.min(across, count);
  const along = Math.ceil(count / across);
  return isColumns ? { columns: along, rows: used } : { columns: used, rows: along };
}

function packGrid(count: number, aspect: number): UnitGrid {
  const exact = Math.sqrt(count * aspect);
  const most = Math.min(count, Math.max(1, Math.floor(exact * MAX_STRETCH)));
  const fewest = Math.min(most, Math.max(1, Math.ceil(exact / MAX_STRETCH)));
  let best: UnitGrid = { columns: most, rows: Math.ceil(count / most) };
  let bestCost = Number.POSITIVE_INFINITY;
  for (let columns = most; columns >= fewest; columns -= 1) {
    const rows = Math.ceil(count / columns);
    const empty = (columns * rows - count) / count;
    const cost = empty + SHAPE_WEIGHT * Math.abs(Math.log(columns / rows / aspect));
    if (cost < bestCost - 1e-9) {
      best = { columns, rows };
      bestCost = cost;
    }
  }
  return best;
}
