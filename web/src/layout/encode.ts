// Turns the attribute of a layer into dense codes, one per distinct key: names in order, then the rest as "other", then
// the missing. Counting passes only; only distinct names are sorted.

import { type AttributeValues, isNames, type NumberValues } from "./attributes.ts";
import { computeLimits, findBin, labelBin, labelNumber } from "./bins.ts";
import type { Layer } from "./grammar.ts";
import { compareNames } from "./name-order.ts";

export type GroupKey =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "bin"; readonly from: number; readonly to: number }
  /** The values beyond the limit, the ones with the fewest units, in one group. */
  | { readonly kind: "other"; readonly distinct: number }
  /** `apart`: only units with this value of another attribute, if missing names are split by it. */
  | { readonly kind: "missing"; readonly apart?: { readonly attribute: string; readonly name: string } };

/** What groups are called that have no name of their own. */
export interface GroupWords {
  readonly missing: string;
  /** By attribute, where it has a better word: units without a workload are `free`. */
  readonly missingOf: ReadonlyMap<string, string>;
  readonly other: string;
  /** Attributes whose missing are several groups, by the values of another one: units that nobody holds may be broken. */
  readonly apart?: MissingApart;
}

export interface MissingApart {
  readonly attributes: ReadonlySet<string>;
  readonly by: string;
  /** What a group is called, by the other attribute's value; in this order. Other values are put together. */
  readonly words: ReadonlyMap<string, string>;
}

export interface LayerKeys {
  readonly attribute: string;
  /** In ascending order by name; "other" and the missing last. */
  readonly keys: readonly GroupKey[];
  /** One per key. */
  readonly labels: readonly string[];
}

export interface EncodedLayer extends LayerKeys {
  /** The key of each row; meaningful only for the rows that are laid out. */
  readonly codes: Uint32Array;
  /** Keys below this are names, numbers or bins; the others stay last whatever the order. */
  readonly namedCount: number;
}

export interface EncodeOptions {
  readonly words: GroupWords;
  /** Distinct values an attribute may have before the smallest are put together; null: as many as there are. */
  readonly foldLimit: number | null;
  /** The values that tell the missing apart. */
  readonly apart?: AttributeValues | undefined;
}

export function encodeLayer(
  layer: Layer,
  values: AttributeValues | undefined,
  rows: Uint32Array,
  rowCount: number,
  { words, foldLimit, apart }: EncodeOptions,
): EncodedLayer {
  const attribute = typeof layer.by === "string" ? layer.by : layer.by.metric;
  const missing = words.missingOf.get(attribute) ?? words.missing;
  const source = readSource(layer, values, rows, rowCount);
  const { kept, folded } = chooseKept(source, rows, foldLimit);
  const missingCode = kept.length + (folded.length > 0 ? 1 : 0);
  const denseOf = new Uint32Array(source.keyCount + 1).fill(missingCode);
  kept.forEach((code, index) => {
    denseOf[code] = index;
  });
  for (const code of folded) denseOf[code] = kept.length;
  const codes = new Uint32Array(rowCount);
  for (const row of rows) codes[row] = denseOf[source.codes[row] ?? 0] ?? missingCode;
  const keys = kept.map((code) => source.keyOf(code) ?? MISSING);
  if (folded.length > 0) keys.push({ kind: "other", distinct: folded.length });
  const labels = keys.map((key) => labelKey(key, words.other, missing));
  keys.push(MISSING);
  labels.push(missing);
  if (words.apart?.attributes.has(attribute) && apart !== undefined && isNames(apart)) {
    for (const [name, label] of words.apart.words) {
      const apartCode = apart.names.indexOf(name, 1);
      if (apartCode < 0) continue;
      const code = keys.push({ kind: "missing", apart: { attribute: words.apart.by, name } }) - 1;
      labels.push(label);
      for (const row of rows) if (codes[row] === missingCode && apart.codes[row] === apartCode) codes[row] = code;
    }
  }
  return { attribute, keys, labels, codes, namedCount: kept.length };
}

function labelKey(key: GroupKey, other: string, missing: string): string {
  switch (key.kind) {
    case "name":
      return key.name;
    case "number":
      return labelNumber(key.value);
    case "bin":
      return labelBin(key.from, key.to);
    case "other":
      return `${other} (${key.distinct} groups)`;
    case "missing":
      return missing;
  }
}

const MISSING: GroupKey = { kind: "missing" };

/** Codes 1 … keyCount for the keys, 0 for the missing. */
interface Source {
  readonly codes: Uint32Array;
  readonly keyCount: number;
  /** Null where the code, too, is the missing. */
  keyOf(code: number): GroupKey | null;
  compare(a: number, b: number): number;
}

function readSource(layer: Layer, values: AttributeValues | undefined, rows: Uint32Array, rowCount: number): Source {
  if (values === undefined) {
    return { codes: new Uint32Array(rowCount), keyCount: 0, keyOf: () => null, compare: () => 0 };
  }
  if (isNames(values)) {
    const { codes, names } = values;
    return {
      codes,
      keyCount: names.length - 1,
      keyOf(code) {
        const name = names[code] ?? null;
        return name === null ? null : { kind: "name", name };
      },
      compare: (a, b) => compareNames(names[a] ?? "", names[b] ?? "") || a - b,
    };
  }
  if (typeof layer.by !== "string") return binNumbers(values, rows, layer.by.bins);
  return internNumbers(values, rows);
}

function binNumbers(values: NumberValues, rows: Uint32Array, bins: number | readonly number[]): Source {
  const limits = computeLimits(pickValues(values, rows), bins);
  const codes = new Uint32Array(values.length);
  for (const row of rows) {
    const value = values[row] ?? Number.NaN;
    if (!Number.isNaN(value)) codes[row] = findBin(limits, value) + 1;
  }
  return {
    codes,
    keyCount: limits.length - 1,
    keyOf: (code) => ({ kind: "bin", from: limits[code - 1] ?? 0, to: limits[code] ?? 0 }),
    compare: (a, b) => a - b,
  };
}

function pickValues(values: NumberValues, rows: Uint32Array): Float64Array {
  const picked = new Float64Array(rows.length);
  for (let index = 0; index < rows.length; index += 1) picked[index] = values[rows[index] ?? 0] ?? Number.NaN;
  return picked;
}

function internNumbers(values: NumberValues, rows: Uint32Array): Source {
  const codes = new Uint32Array(values.length);
  const codeOf = new Map<number, number>();
  const distinct: number[] = [];
  for (const row of rows) {
    const value = values[row] ?? Number.NaN;
    if (Number.isNaN(value)) continue;
    let code = codeOf.get(value);
    if (code === undefined) {
      code = distinct.push(value);
      codeOf.set(value, code);
    }
    codes[row] = code;
  }
  return {
    codes,
    keyCount: distinct.length,
    keyOf: (code) => ({ kind: "number", value: distinct[code - 1] ?? 0 }),
    compare: (a, b) => ((distinct[a - 1] ?? 0) < (distinct[b - 1] ?? 0) ? -1 : 1),
  };
}

/** The codes in use, in order; of more than the limit, those with the most units, and the others apart. */
function chooseKept(
  source: Source,
  rows: Uint32Array,
  foldLimit: number | null,
): { readonly kept: readonly number[]; readonly folded: readonly number[] } {
  const counts = new Uint32Array(source.keyCount + 1);
  for (const row of rows) {
    const code = source.codes[row] ?? 0;
    if (code < counts.length) counts[code] = (counts[code] ?? 0) + 1;
  }
  const used: number[] = [];
  for (let code = 1; code < counts.length; code += 1) {
    if ((counts[code] ?? 0) > 0 && source.keyOf(code) !== null) used.push(code);
  }
  if (foldLimit === null || used.length <= foldLimit) return { kept: used.sort(source.compare), folded: [] };
  used.sort((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0) || source.compare(a, b));
  return { kept: used.slice(0, foldLimit).sort(source.compare), folded: used.slice(foldLimit) };
}
