import { describe, expect, it } from "vitest";
import { cacheColumns } from "../filter/filter-columns.ts";
import { orderRows, type TableSpec } from "./table-spec.ts";

interface Row {
  readonly name: string;
  readonly gpus: number | null;
}

const rows: readonly Row[] = [
  { name: "train-a", gpus: 8 },
  { name: "train-b", gpus: null },
  { name: "eval-c", gpus: 1 },
];

const spec: TableSpec<Row> = {
  rows,
  columns: [
    {
      key: "gpus",
      title: "GPUs",
      width: 1,
      grow: 0,
      rank: 0,
      cell: (row) => row.gpus,
      sortKey: (row) => row.gpus,
      csv: (row) => row.gpus,
    },
  ],
  initialSort: { column: "gpus", descending: true },
  keyOf: (row) => row.name,
  selectionOf: (row) => ({ kind: "workload", key: row.name }),
  attributes: cacheColumns(
    rows.length,
    () => false,
    () => null,
    () => [],
  ),
};

describe("orderRows", () => {
  it("puts rows without a value last", () => {
    const ordered = orderRows(spec, Uint32Array.of(0, 1, 2), { column: "gpus", descending: false });
    expect(ordered.map(({ gpus }) => gpus)).toEqual([1, 8, null]);
  });

  it("shows only the rows that are left, in their own order where there is no such column", () => {
    const ordered = orderRows(spec, Uint32Array.of(0, 2), { column: "nothing", descending: false });
    expect(ordered).toEqual([rows[0], rows[2]]);
  });
});
