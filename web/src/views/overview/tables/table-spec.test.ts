import { describe, expect, it } from "vitest";
import { INITIAL_SCREEN } from "../../../state/screen.ts";
import { narrowRows, orderRows, type TableSpec } from "./table-spec.ts";

interface Row {
  readonly name: string;
  readonly state: string;
  readonly users: readonly string[];
  readonly gpus: number | null;
}

const rows: readonly Row[] = [
  { name: "train-a", state: "running", users: ["ada"], gpus: 8 },
  { name: "train-b", state: "waiting", users: ["ada", "bob"], gpus: null },
  { name: "eval-c", state: "running", users: ["bob"], gpus: 1 },
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
  facetOf: (row, name) => (name === "state" ? row.state : name === "user" ? row.users : null),
  textOf: (row) => `${row.name} ${row.users.join(" ")}`,
};

const narrow = (filters: Partial<typeof INITIAL_SCREEN.filters>, text = "") =>
  narrowRows(spec, { filters: { ...INITIAL_SCREEN.filters, ...filters }, text });
const shown = (result: ReturnType<typeof narrow>) => result.rows.map(({ name }) => name);

describe("narrowRows", () => {
  it("takes any value of one filter and all filters together", () => {
    expect(shown(narrow({ state: ["running", "waiting"], user: ["ada"] }))).toEqual(["train-a", "train-b"]);
    expect(shown(narrow({ state: ["running"], user: ["bob"] }))).toEqual(["eval-c"]);
  });

  it("searches every word, whatever its case", () => {
    expect(shown(narrow({}, "TRAIN bob"))).toEqual(["train-b"]);
  });

  it("counts in a facet what choosing its value would show", () => {
    const { facets } = narrow({ state: ["running"] });
    expect(Object.fromEntries(facets.state)).toEqual({ running: 2, waiting: 1 });
    expect(Object.fromEntries(facets.user)).toEqual({ ada: 1, bob: 1 });
    expect(facets.project.size).toBe(0);
  });
});

describe("orderRows", () => {
  it("puts rows without a value last", () => {
    expect(orderRows(spec, rows, { column: "gpus", descending: false }).map(({ gpus }) => gpus)).toEqual([1, 8, null]);
    expect(orderRows(spec, rows, { column: "nothing", descending: false })).toBe(rows);
  });
});
