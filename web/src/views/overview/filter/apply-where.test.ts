import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AttributeName } from "../../../state/attributes.ts";
import { type Condition, parseWhere, type Where } from "../../../state/where.ts";
import { applyWhere, countNames, listPassing, markFiltered, type Narrowed } from "./apply-where.ts";
import {
  cacheColumns,
  type FilterColumns,
  isNumbers,
  type NamedColumn,
  toNameColumn,
  toNameLists,
  toNumberColumn,
} from "./filter-columns.ts";

interface Row {
  readonly user: string | null;
  readonly partitions: readonly string[];
  readonly util: number | null;
}

const ROWS: readonly Row[] = [
  { user: "ada", partitions: ["a100"], util: 0.1 },
  { user: "bob", partitions: ["a100", "v100"], util: 0.9 },
  { user: null, partitions: [], util: null },
  { user: "Ada-two", partitions: ["v100"], util: 0.5 },
];

function toColumns(rows: readonly Row[]): FilterColumns {
  const user = toNameColumn(rows, (row) => row.user);
  const partition = toNameLists(rows, (row) => row.partitions);
  const util = Float32Array.from(toNumberColumn(rows, (row) => row.util));
  const byAttribute: Partial<Record<AttributeName, NamedColumn | Float32Array>> = {
    user,
    partition,
    gpu_util_ratio: util,
  };
  return cacheColumns(
    rows.length,
    (name) => name in byAttribute,
    (name) => byAttribute[name] ?? null,
    () => [user, partition],
  );
}

const columns = toColumns(ROWS);
const where = (...texts: readonly string[]): Where => parseWhere(texts, []);
const passing = (texts: readonly string[], text = "") => [...listPassing(applyWhere(columns, where(...texts), text))];

function countAll(attribute: AttributeName, narrowed: Narrowed, clause: number, drawn: Uint8Array | null = null) {
  const column = columns.find(attribute);
  if (column === null || isNumbers(column)) throw new Error("not names");
  const counts = countNames(column, narrowed, clause, drawn);
  return Object.fromEntries(
    column.names.flatMap((name, code) => (counts[code] ? [[name ?? "none", counts[code]]] : [])),
  );
}

describe("conditions on columns", () => {
  it.each([
    [["user:ada,bob"], [0, 1]],
    [["user:~"], [2]],
    [["!user:ada"], [1, 2, 3]],
    [["user~ADA"], [0, 3]],
    [["!user~ada"], [1, 2]],
    [["partition:v100"], [1, 3]],
    [["partition:~"], [2]],
    [["!partition:v100"], [0, 2]],
    [["gpu_util_ratio:0.1..0.5"], [0, 3]],
    [["gpu_util_ratio:..0.1"], [0]],
    [["!gpu_util_ratio:0.1..0.5"], [1]],
    [["user:ada|gpu_util_ratio:0.9.."], [0, 1]],
    [["partition:a100", "gpu_util_ratio:0.5.."], [1]],
  ])("%j let through %j", (texts, rows) => {
    expect(passing(texts)).toEqual(rows);
  });

  it("find every word of a search in any column, whatever its case", () => {
    expect(passing([], "ADA v100")).toEqual([3]);
    expect(passing([], "ada")).toEqual([0, 3]);
    expect(passing(["user:ada"], "v100")).toEqual([]);
  });

  it("that rows know nothing of are not applied, and say so", () => {
    const narrowed = applyWhere(columns, where("rack:r1", "user:ada", "user:bob|rack:r1"), "");
    expect(narrowed.isApplied).toEqual([false, true, false]);
    expect([...listPassing(narrowed)]).toEqual([0]);
    expect(applyWhere(columns, where("rack:r1"), "").failures).toBeNull();
  });

  it("give no mask where they let everything through", () => {
    expect(markFiltered(applyWhere(columns, [], ""))).toBeNull();
    expect(markFiltered(applyWhere(columns, where("!user:nobody"), ""))).toBeNull();
    expect([...(markFiltered(applyWhere(columns, where("user:ada"), "")) ?? [])]).toEqual([0, 1, 1, 1]);
  });

  it("keep within the rows that may be shown", () => {
    const narrowed = applyWhere(columns, where("partition:v100"), "", Uint8Array.of(1, 1, 1, 0));
    expect([...listPassing(narrowed)]).toEqual([1]);
  });
});

describe("counts of a facet", () => {
  it("are what choosing a value would show", () => {
    const narrowed = applyWhere(columns, where("user:ada", "gpu_util_ratio:0..0.6"), "");
    expect(countAll("user", narrowed, 0)).toEqual({ ada: 1, "Ada-two": 1 });
    expect(countAll("partition", narrowed, -1)).toEqual({ a100: 1 });
  });

  it("leave out what is not drawn", () => {
    const narrowed = applyWhere(columns, [], "");
    expect(countAll("user", narrowed, -1, Uint8Array.of(1, 0, 1, 0))).toEqual({ ada: 1, none: 1 });
  });

  it("agree with choosing each value, for any rows and conditions", () => {
    const name = fc.constantFrom("a", "b", "c");
    const row: fc.Arbitrary<Row> = fc.record({
      user: fc.option(name),
      partitions: fc.uniqueArray(name),
      util: fc.option(fc.constantFrom(0, 0.25, 0.5)),
    });
    const other = fc.constantFrom("gpu_util_ratio:0.2..", "!partition:a", "user~b|partition:c");
    fc.assert(
      fc.property(fc.array(row, { maxLength: 12 }), fc.subarray(["a", "b"]), other, (rows, chosen, text) => {
        const columnsOfRows = toColumns(rows);
        const base = [...(chosen.length > 0 ? [`user:${chosen.join(",")}`] : []), text];
        const narrowed = applyWhere(columnsOfRows, where(...base), "");
        const column = columnsOfRows.find("user") as NamedColumn;
        const counts = countNames(column, narrowed, chosen.length > 0 ? 0 : -1, null);
        for (const [code, value] of column.names.entries()) {
          if (value === null) continue;
          const alone = listPassing(applyWhere(columnsOfRows, where(`user:${value}`, text), ""));
          expect(counts[code]).toBe(alone.length);
        }
      }),
    );
  });
});

describe("conditions on rows, one by one", () => {
  /** What a condition means, without columns. */
  function meets(row: Row, condition: Condition): boolean {
    if (condition.kind === "range") {
      if (row.util === null) return false;
      const util = Math.fround(row.util);
      const isInside =
        util >= Math.fround(condition.min ?? -Infinity) && util <= Math.fround(condition.max ?? Infinity);
      return isInside !== condition.isNegated;
    }
    const names = condition.attribute === "user" ? (row.user === null ? [] : [row.user]) : row.partitions;
    const isMet =
      condition.kind === "text"
        ? names.some((name) => name.toLowerCase().includes(condition.text.toLowerCase()))
        : names.some((name) => condition.names.includes(name)) ||
          (names.length === 0 && condition.names.includes(null));
    return isMet !== condition.isNegated;
  }

  it("say the same as columns do", () => {
    const texts = [
      "user:a,~",
      "!user:b",
      "user~A",
      "partition:a|user:c",
      "!partition:~",
      "gpu_util_ratio:0.1..0.6",
      "!gpu_util_ratio:..0.3",
    ];
    const name = fc.constantFrom("a", "b", "ab", "c");
    const row: fc.Arbitrary<Row> = fc.record({
      user: fc.option(name),
      partitions: fc.uniqueArray(name),
      util: fc.option(fc.float({ min: 0, max: 1, noNaN: true })),
    });
    fc.assert(
      fc.property(fc.array(row, { maxLength: 30 }), fc.subarray(texts), (rows, chosen) => {
        const parsed = where(...chosen);
        const expected = rows.flatMap((each, index) =>
          parsed.every((clause) => clause.some((condition) => meets(each, condition))) ? [index] : [],
        );
        expect([...listPassing(applyWhere(toColumns(rows), parsed, ""))]).toEqual(expected);
      }),
    );
  });
});
