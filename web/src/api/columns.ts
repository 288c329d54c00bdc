// Arrow IPC as columns to compute with: words as codes into a dictionary, numbers as typed arrays. Nothing per row.
// Code 0 and NaN stand for missing inside columns; `nameAt` and `numberAt` give null for them.

import { type Column, tableFromIPC } from "@uwdata/flechette";

export interface NameColumn {
  /** One code per row. */
  readonly codes: Uint32Array;
  /** Names by code; `names[0]` is null, the missing name. */
  readonly names: readonly (string | null)[];
}

export type NumberColumn = Float64Array | Float32Array;

export interface Columns {
  readonly rowCount: number;
  /** The column's names, or null where the answer has no such column. */
  findNames(column: string): NameColumn | null;
  findNumbers(column: string): Float64Array | null;
}

export function nameAt(column: NameColumn, row: number): string | null {
  return column.names[column.codes[row] ?? 0] ?? null;
}

export function numberAt(column: NumberColumn, row: number): number | null {
  const value = column[row];
  return value === undefined || Number.isNaN(value) ? null : value;
}

export function emptyNames(rowCount: number): NameColumn {
  return { codes: new Uint32Array(rowCount), names: [null] };
}

/** Columns are decoded when first asked for and kept. */
export function decodeColumns(bytes: Uint8Array): Columns {
  const table = tableFromIPC(bytes, { useBigInt: false });
  const names = new Map<string, NameColumn>();
  const numbers = new Map<string, Float64Array>();
  return {
    rowCount: table.numRows,
    findNames(column) {
      const source = table.names.includes(column) ? table.getChild(column) : null;
      return source && remember(names, column, () => decodeNames(source));
    },
    findNumbers(column) {
      const source = table.names.includes(column) ? table.getChild(column) : null;
      return source && remember(numbers, column, () => decodeNumbers(source));
    },
  };
}

function remember<T>(known: Map<string, T>, key: string, compute: () => T): T {
  const found = known.get(key);
  if (found !== undefined) return found;
  const value = compute();
  known.set(key, value);
  return value;
}

interface DictionaryPart {
  readonly length: number;
  readonly nullCount: number;
  readonly values: ArrayLike<number>;
  readonly dictionary: Column<string>;
  isValid(row: number): boolean;
}

function decodeNames(source: Column<unknown>): NameColumn {
  const part = source.data[0];
  return source.data.length === 1 && isDictionaryPart(part) ? decodeDictionary(part) : internNames(source);
}

function isDictionaryPart(part: unknown): part is DictionaryPart {
  return typeof part === "object" && part !== null && "dictionary" in part && part.dictionary !== undefined;
}

function decodeDictionary(part: DictionaryPart): NameColumn {
  const codes = new Uint32Array(part.length);
  for (let row = 0; row < part.length; row += 1) {
    codes[row] = part.nullCount > 0 && !part.isValid(row) ? 0 : (part.values[row] ?? 0) + 1;
  }
  return { codes, names: [null, ...part.dictionary.toArray()] };
}

/** Plain strings, or several batches whose dictionaries may differ. */
function internNames(source: Column<unknown>): NameColumn {
  const codes = new Uint32Array(source.length);
  const names: (string | null)[] = [null];
  const codeOf = new Map<string, number>();
  let row = 0;
  for (const value of source) {
    if (value !== null && value !== undefined) {
      const name = String(value);
      let code = codeOf.get(name);
      if (code === undefined) {
        code = names.push(name) - 1;
        codeOf.set(name, code);
      }
      codes[row] = code;
    }
    row += 1;
  }
  return { codes, names };
}

function decodeNumbers(source: Column<unknown>): Float64Array {
  const values: ArrayLike<unknown> = source.toArray();
  const numbers = new Float64Array(values.length);
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row];
    numbers[row] = value === null || value === undefined ? Number.NaN : Number(value);
  }
  return numbers;
}
