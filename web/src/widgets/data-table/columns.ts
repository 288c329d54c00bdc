// The definition of a table column, columns of numbers, which columns fit a given width, and sorting by column.

import type { ReactNode } from "react";
import type { CsvValue } from "../../base/csv.ts";
import { MISSING } from "../../base/format.ts";
import { computeOrder, type SortKey } from "../../base/order.ts";

export interface Column<Row> {
  readonly key: string;
  readonly title: string;
  readonly tip?: string;
  /** Drawn under the title, as the ticks of an axis that all cells share. */
  readonly scale?: ReactNode;
  /** Least width in px. */
  readonly width: number;
  /** Share of what is left over; 0 keeps the width. */
  readonly grow: number;
  readonly align?: "right";
  /** The larger, the sooner the column gives way when space is short; 0 never does. */
  readonly rank: number;
  /** Whether the first click on the heading sorts the largest first. */
  readonly isLargestFirst?: boolean;
  cell(row: Row): ReactNode;
  sortKey(row: Row): SortKey;
  csv(row: Row): CsvValue;
}

/** A column of numbers, right-aligned; a missing number is a dash. */
export function numberColumn<Row>(
  column: Pick<Column<Row>, "key" | "title" | "tip" | "width" | "rank">,
  pick: (row: Row) => number | null,
  format: (value: number) => string,
): Column<Row> {
  return {
    ...column,
    grow: 0,
    align: "right",
    isLargestFirst: true,
    cell: (row) => {
      const value = pick(row);
      return value === null ? MISSING : format(value);
    },
    sortKey: pick,
    csv: pick,
  };
}

/** Columns in their order, without those of the highest ranks that do not fit. The one sorted by is always there. */
export function fitColumns<C extends { readonly key: string; readonly width: number; readonly rank: number }>(
  columns: readonly C[],
  widthPx: number,
  sortedBy: string,
): readonly C[] {
  const rankOf = (column: C) => (column.key === sortedBy ? 0 : column.rank);
  let usedPx = 0;
  const fitting = new Set<C>();
  for (const column of columns.toSorted((a, b) => rankOf(a) - rankOf(b))) {
    usedPx += column.width;
    if (rankOf(column) > 0 && usedPx > widthPx) break;
    fitting.add(column);
  }
  return columns.filter((column) => fitting.has(column));
}

/** In the given order where no column has that name. */
export function sortRows<Row>(
  rows: readonly Row[],
  columns: readonly Pick<Column<Row>, "key" | "sortKey">[],
  sort: { readonly column: string; readonly descending: boolean },
): readonly Row[] {
  const column = columns.find(({ key }) => key === sort.column);
  if (!column) return rows;
  const order = computeOrder(
    rows.map((row) => column.sortKey(row)),
    sort.descending,
  );
  return Array.from(order, (index) => rows[index] as Row);
}

export function gridTemplate(columns: readonly { readonly width: number; readonly grow: number }[]): string {
  return columns.map(({ width, grow }) => (grow > 0 ? `minmax(${width}px, ${grow}fr)` : `${width}px`)).join(" ");
}
