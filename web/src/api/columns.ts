// Arrow IPC as columns: text as codes into a dictionary, numbers as typed arrays, no object per row. Code 0 and NaN
// mean missing; `nameAt` and `numberAt` return null for them.

import { type Column, Type, tableFromIPC } from "@uwdata/flechette";

export interface NameColumn {
  /** One code per row. */
  readonly codes: Uint32Array;
  /** Names by code; `names[0]` is null, the missing name. */
  readonly names: readonly (string | null)[];
}

export type NumberColumn = Float64Array | Float32Array;

export interface Columns {
  readonly rowCount: number;
  /** The column's names; null if the response has no such column. */
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

/** Columns are decoded on first use and cached. */
export function decodeColumns(bytes: Uint8Array): Columns {
  const table = tableFromIPC(bytes, { useBigInt: false });
  const names = new Map<string, NameColumn>();
  const numbers = new Map<string, Float64Array>();
  return {
    rowCount: table.numRows,
    findNames(column) {
      const source = table.names.includes(column) ? table.getChild(column) : null;
      return source && getOrCompute(names, column, () => decodeNames(source));
    },
    findNumbers(column) {
      const source = table.names.includes(column) ? table.getChild(column) : null;
      return source && getOrCompute(numbers, column, () => decodeNumbers(source));
    },
  };
}

function getOrCompute<T>(cache: Map<string, T>, key: string, compute: () => T): T {
  const cached = cache.get(key);
  if (cached !== undefined) return cached;
  const value = compute();
  cache.set(key, value);
  return value;
}

/** The buffers of an Arrow batch: ten thousand rows are one loop instead of ten thousand calls. */
interface Part {
  readonly length: number;
  readonly nullCount: number;
  readonly validity?: Uint8Array;
  readonly values?: ArrayLike<number | bigint>;
  readonly offsets?: ArrayLike<number | bigint>;
  readonly dictionary?: Column<string>;
  readonly type: { readonly typeId: number };
}

function partsOf(source: Column<unknown>): readonly Part[] {
  return source.data as unknown as readonly Part[];
}

/** Bit `row` of the validity bitmap; parts without nulls have no bitmap. */
function isNull({ nullCount, validity }: Part, row: number): boolean {
  return nullCount > 0 && validity !== undefined && (((validity[row >> 3] ?? 0) >> (row & 7)) & 1) === 0;
}

function decodeNames(source: Column<unknown>): NameColumn {
  const parts = partsOf(source);
  const [part] = parts;
  if (parts.length === 1 && part?.dictionary && part.values) {
    return decodeDictionary(part, part.values, part.dictionary);
  }
  return internNames(parts.length === 1 && part ? (findAsciiTexts(part) ?? source) : source, source.length);
}

function decodeDictionary(part: Part, keys: ArrayLike<number | bigint>, dictionary: Column<string>): NameColumn {
  const codes = new Uint32Array(part.length);
  for (let row = 0; row < part.length; row += 1) codes[row] = isNull(part, row) ? 0 : Number(keys[row]) + 1;
  return { codes, names: [null, ...dictionary.toArray()] };
}

/** ASCII strings are cut from one decoded text, which is much faster than decoding each; null if not ASCII. */
function findAsciiTexts(part: Part): readonly (string | null)[] | null {
  const { values, offsets, type } = part;
  if ((type.typeId !== Type.Utf8 && type.typeId !== Type.LargeUtf8) || !(values instanceof Uint8Array) || !offsets) {
    return null;
  }
  const start = Number(offsets[0] ?? 0);
  const bytes = values.subarray(start, Number(offsets[part.length] ?? 0));
  const text = new TextDecoder().decode(bytes);
  if (text.length !== bytes.length) return null;
  const at = (index: number) => Number(offsets[index] ?? 0) - start;
  return Array.from({ length: part.length }, (_, row) => (isNull(part, row) ? null : text.slice(at(row), at(row + 1))));
}

/** Plain strings, or several batches whose dictionaries may differ. */
function internNames(values: Iterable<unknown>, rowCount: number): NameColumn {
  const codes = new Uint32Array(rowCount);
  const names: (string | null)[] = [null];
  const codeOf = new Map<string, number>();
  let row = 0;
  for (const value of values) {
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

/** Booleans are stored as bits: 1 or 0. */
function readNumber({ type }: Part, values: ArrayLike<number | bigint>, row: number): number {
  return type.typeId === Type.Bool ? (Number(values[row >> 3]) >> (row & 7)) & 1 : Number(values[row]);
}

type PlainNumbers = Float64Array | Float32Array | Uint8Array | Uint16Array | Uint32Array | Int16Array | Int32Array;

/** Whether a part can be copied as it is. Booleans and 64-bit integers cannot. */
function isPlain({ type }: Part, values: unknown): values is PlainNumbers {
  if (type.typeId === Type.Bool || !ArrayBuffer.isView(values) || values instanceof DataView) return false;
  return !(values instanceof BigInt64Array || values instanceof BigUint64Array);
}

function decodeNumbers(source: Column<unknown>): Float64Array {
  const numbers = new Float64Array(source.length);
  let start = 0;
  for (const part of partsOf(source)) {
    const { values } = part;
    if (part.nullCount === 0 && isPlain(part, values)) numbers.set(values.subarray(0, part.length), start);
    else {
      for (let row = 0; row < part.length; row += 1) {
        numbers[start + row] = values === undefined || isNull(part, row) ? Number.NaN : readNumber(part, values, row);
      }
    }
    start += part.length;
  }
  return numbers;
}
