// The rows of a table as filterable columns: one name per row, several, or a number. Units are columns already; those
// of workloads and nodes are built from responses.

import type { NameColumn, NumberColumn } from "../../../api/columns.ts";
import type { AttributeName } from "../../../state/attributes.ts";

/** Several names per row: those of row r are `codes[starts[r]] … codes[starts[r + 1] − 1]`. */
export interface NameLists {
  readonly starts: Uint32Array;
  readonly codes: Uint32Array;
  readonly names: readonly (string | null)[];
}

export type NamedColumn = NameColumn | NameLists;
export type FilterColumn = NamedColumn | NumberColumn;

export interface FilterColumns {
  readonly rowCount: number;
  /** Whether rows have such an attribute; asking costs nothing. */
  has(attribute: AttributeName): boolean;
  /** Null where rows have no such attribute. */
  find(attribute: AttributeName): FilterColumn | null;
  /** What a search looks through. */
  readonly searched: readonly NamedColumn[];
}

export function isNumbers(column: FilterColumn): column is NumberColumn {
  return ArrayBuffer.isView(column);
}

export function isLists(column: NamedColumn): column is NameLists {
  return "starts" in column;
}

export function toNameColumn<Row>(rows: readonly Row[], nameOf: (row: Row) => string | null): NameColumn {
  const { codes, names } = internNames();
  return { codes: Uint32Array.from(rows, (row) => codes(nameOf(row))), names };
}

export function toNameLists<Row>(rows: readonly Row[], namesOf: (row: Row) => Iterable<string>): NameLists {
  const { codes, names } = internNames();
  const starts = new Uint32Array(rows.length + 1);
  const all: number[] = [];
  rows.forEach((row, index) => {
    for (const name of new Set(namesOf(row))) all.push(codes(name));
    starts[index + 1] = all.length;
  });
  return { starts, codes: Uint32Array.from(all), names };
}

export function toNumberColumn<Row>(
  rows: readonly Row[],
  numberOf: (row: Row) => number | null | undefined,
): Float64Array {
  return Float64Array.from(rows, (row) => numberOf(row) ?? Number.NaN);
}

function internNames() {
  const names: (string | null)[] = [null];
  const codeOf = new Map<string | null, number>([[null, 0]]);
  const codes = (name: string | null): number => {
    const code = codeOf.get(name);
    if (code !== undefined) return code;
    codeOf.set(name, names.length);
    return names.push(name) - 1;
  };
  return { codes, names };
}

/** Computes each column when it is first asked for and keeps it. */
export function cacheColumns(
  rowCount: number,
  has: (attribute: AttributeName) => boolean,
  make: (attribute: AttributeName) => FilterColumn | null,
  listSearched: () => readonly NamedColumn[],
): FilterColumns {
  const cache = new Map<AttributeName, FilterColumn | null>();
  let searched: readonly NamedColumn[] | null = null;
  return {
    rowCount,
    has,
    find(attribute) {
      const cached = cache.get(attribute);
      if (cached !== undefined) return cached;
      const column = make(attribute);
      cache.set(attribute, column);
      return column;
    },
    get searched() {
      searched ??= listSearched();
      return searched;
    },
  };
}
