// What a table of the overview consists of, and in which order its rows are shown. Pure; filters are in filter/.

import type { Selection, Sort } from "../../../state/screen.ts";
import { type Column, sortRows } from "../../../widgets/data-table/columns.ts";
import type { FilterColumns } from "../filter/filter-columns.ts";

export interface TableSpec<Row> {
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly initialSort: Sort;
  keyOf(row: Row): string;
  selectionOf(row: Row): Selection;
  /** What its rows are filtered and searched by, in the order of `rows`. */
  readonly attributes: FilterColumns;
}

/** The rows at these places, in order. */
export function orderRows<Row>(spec: TableSpec<Row>, places: Uint32Array, sort: Sort): readonly Row[] {
  return sortRows(
    Array.from(places, (place) => spec.rows[place] as Row),
    spec.columns,
    sort,
  );
}
