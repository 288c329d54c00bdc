// Groups units layer by layer into a tree of flat arrays: per layer one counting pass and one stable scatter; only
// groups are sorted. O(units × layers). Knows nothing of positions and sizes.

import { isNames, type NameValues, type NumberValues, type UnitColumns } from "./attributes.ts";
import { type EncodedLayer, type EncodeOptions, encodeLayer, type GroupWords, type LayerKeys } from "./encode.ts";
import { attributeOf, type GroupSort, type UnitSort, type View } from "./grammar.ts";
import { compareNames } from "./name-order.ts";
import { orderNumbers } from "./number-order.ts";

/** Group 0 is everything; groups are numbered breadth first, so that siblings are neighbors and parents come first. */
export interface GroupTree {
  readonly groupCount: number;
  /** 0 for everything, k for the groups of layer k − 1. */
  readonly depth: Uint8Array;
  /** Group 0 is its own parent. */
  readonly parent: Uint32Array;
  /** The children of g: childStart[g] … childStart[g + 1]; of an innermost group none. */
  readonly childStart: Uint32Array;
  /** The units of g: rows[unitStart[g]] … for unitCount[g]. */
  readonly unitStart: Uint32Array;
  readonly unitCount: Uint32Array;
  /** Index into the keys of the group's layer. */
  readonly key: Uint32Array;
  /** The first group of each depth, and the end. */
  readonly depthStart: readonly number[];
  /** The rows that are laid out, the units of each group together. */
  readonly rows: Uint32Array;
  readonly layers: readonly LayerKeys[];
}

export interface GroupOptions {
  readonly words: GroupWords;
  /** Distinct values of one attribute before the smallest are put together as "other". */
  readonly foldLimit: number;
  /** Attributes that are never put together. */
  readonly unfolded: readonly string[];
}

/** `rows`: those to lay out, each once. */
export function groupUnits(view: View, columns: UnitColumns, rows: Uint32Array, options: GroupOptions): GroupTree {
  let ordered = orderUnits(view.mark.sort, columns, rows);
  const layers: EncodedLayer[] = [];
  const levels: Level[] = [rootLevel(rows.length)];
  for (const layer of view.layers) {
    const attribute = attributeOf(layer);
    const encoding: EncodeOptions = {
      words: options.words,
      foldLimit: options.unfolded.includes(attribute) ? null : options.foldLimit,
      apart: options.words.apart && columns.attributes.get(options.words.apart.by),
    };
    const encoded = encodeLayer(layer, columns.attributes.get(attribute), ordered, columns.rowCount, encoding);
    const values = layer.sort.of === null ? undefined : columns.attributes.get(layer.sort.of);
    const split = splitLevel(levels.at(-1) ?? rootLevel(0), ordered, encoded, {
      sort: layer.sort,
      values: values === undefined || isNames(values) ? null : values,
    });
    layers.push(encoded);
    levels.push(split.level);
    ordered = split.rows;
  }
  return joinLevels(levels, ordered, layers);
}

/** The groups of one depth, in order. */
interface Level {
  readonly size: number;
  /** Number of the parent within its own level. */
  readonly parent: Uint32Array;
  readonly start: Uint32Array;
  readonly count: Uint32Array;
  readonly key: Uint32Array;
}

function rootLevel(unitCount: number): Level {
  return {
    size: 1,
    parent: new Uint32Array(1),
    start: new Uint32Array(1),
    count: Uint32Array.of(unitCount),
    key: new Uint32Array(1),
  };
}

interface LevelSort {
  readonly sort: GroupSort;
  readonly values: NumberValues | null;
}

function splitLevel(
  parents: Level,
  rows: Uint32Array,
  layer: EncodedLayer,
  order: LevelSort,
): { readonly level: Level; readonly rows: Uint32Array } {
  const { codes } = layer;
  const capacity = Math.min(rows.length, parents.size * layer.keys.length);
  const parent = new Uint32Array(capacity);
  const start = new Uint32Array(capacity);
  const count = new Uint32Array(capacity);
  const key = new Uint32Array(capacity);
  const next = new Uint32Array(rows.length);
  const tally = new Uint32Array(layer.keys.length);
  const place = new Uint32Array(layer.keys.length);
  const present = new Uint32Array(layer.keys.length);
  const sorter = makeSorter(layer, tally, order);
  let size = 0;
  for (let group = 0; group < parents.size; group += 1) {
    const begin = parents.start[group] ?? 0;
    const end = begin + (parents.count[group] ?? 0);
    let presentCount = 0;
    for (let at = begin; at < end; at += 1) {
      const code = codes[rows[at] ?? 0] ?? 0;
      const before = tally[code] ?? 0;
      if (before === 0) present[presentCount++] = code;
      tally[code] = before + 1;
    }
    const children = present.subarray(0, presentCount);
    sorter(children, rows.subarray(begin, end));
    let offset = begin;
    for (const code of children) {
      parent[size] = group;
      start[size] = offset;
      key[size] = code;
      place[code] = offset;
      const units = tally[code] ?? 0;
      count[size] = units;
      offset += units;
      size += 1;
      tally[code] = 0;
    }
    for (let at = begin; at < end; at += 1) {
      const row = rows[at] ?? 0;
      const code = codes[row] ?? 0;
      const to = place[code] ?? 0;
      next[to] = row;
      place[code] = to + 1;
    }
  }
  return { level: { size, parent, start, count, key }, rows: next };
}

type Sorter = (children: Uint32Array, rows: Uint32Array) => void;

/** Sorts keys in place. Names decide between equals; "other" and the missing are last in either order. */
function makeSorter(layer: EncodedLayer, tally: Uint32Array, { sort, values }: LevelSort): Sorter {
  const { namedCount } = layer;
  const sign = sort.order === "ascending" ? 1 : -1;
  const by = sort.by === "value" && values === null ? "name" : sort.by;
  if (by === "name" && sign === 1) return (children) => children.sort();
  const weights = by === "value" ? new Float64Array(layer.keys.length) : by === "count" ? tally : null;
  const compare = (a: number, b: number): number => {
    const isNamedA = a < namedCount;
    if (!isNamedA || !(b < namedCount)) return isNamedA === b < namedCount ? a - b : isNamedA ? -1 : 1;
    if (weights === null) return sign * (a - b);
    const x = weights[a] ?? 0;
    const y = weights[b] ?? 0;
    if (x === y) return a - b;
    // A group without any value is after those with one.
    if (Number.isNaN(x)) return Number.isNaN(y) ? a - b : 1;
    if (Number.isNaN(y)) return -1;
    return sign * (x - y);
  };
  return (children, rows) => {
    if (weights instanceof Float64Array && values !== null) averageByKey(weights, layer.codes, values, children, rows);
    children.sort(compare);
  };
}

function averageByKey(
  means: Float64Array,
  codes: Uint32Array,
  values: NumberValues,
  children: Uint32Array,
  rows: Uint32Array,
): void {
  const sampled = new Map<number, number>();
  for (const code of children) means[code] = 0;
  for (const row of rows) {
    const value = values[row] ?? Number.NaN;
    if (Number.isNaN(value)) continue;
    const code = codes[row] ?? 0;
    means[code] = (means[code] ?? 0) + value;
    sampled.set(code, (sampled.get(code) ?? 0) + 1);
  }
  for (const code of children) means[code] = (means[code] ?? 0) / (sampled.get(code) ?? Number.NaN);
}

function joinLevels(levels: readonly Level[], rows: Uint32Array, layers: readonly LayerKeys[]): GroupTree {
  const depthStart = [0];
  for (const level of levels) depthStart.push((depthStart.at(-1) ?? 0) + level.size);
  const groupCount = depthStart.at(-1) ?? 0;
  const tree = {
    depth: new Uint8Array(groupCount),
    parent: new Uint32Array(groupCount),
    childStart: new Uint32Array(groupCount + 1).fill(groupCount),
    unitStart: new Uint32Array(groupCount),
    unitCount: new Uint32Array(groupCount),
    key: new Uint32Array(groupCount),
  };
  levels.forEach((level, depth) => {
    const offset = depthStart[depth] ?? 0;
    const parentOffset = depthStart[Math.max(0, depth - 1)] ?? 0;
    tree.depth.fill(depth, offset, offset + level.size);
    tree.unitStart.set(level.start.subarray(0, level.size), offset);
    tree.unitCount.set(level.count.subarray(0, level.size), offset);
    tree.key.set(level.key.subarray(0, level.size), offset);
    for (let index = level.size - 1; index >= 0; index -= 1) {
      const parent = parentOffset + (level.parent[index] ?? 0);
      tree.parent[offset + index] = parent;
      if (depth > 0) tree.childStart[parent] = offset + index;
    }
  });
  const plainLayers = layers.map(({ attribute, keys, labels }) => ({ attribute, keys, labels }));
  return { groupCount, ...tree, depthStart, rows, layers: plainLayers };
}

/** The rows by the mark's sort; equals stay as they come, the missing are last. */
function orderUnits(sort: UnitSort | null, columns: UnitColumns, rows: Uint32Array): Uint32Array {
  const values = sort === null ? undefined : columns.attributes.get(sort.by);
  if (sort === null || values === undefined) return rows;
  const weights = isNames(values) ? rankNames(values) : values;
  const picked = new Float64Array(rows.length);
  for (let index = 0; index < rows.length; index += 1) picked[index] = weights[rows[index] ?? 0] ?? Number.NaN;
  return orderNumbers(picked, sort.order === "descending").map((position) => rows[position] ?? 0);
}

function rankNames({ codes, names }: NameValues): Float64Array {
  const order = names.map((_, code) => code).sort((a, b) => compareNames(names[a] ?? "", names[b] ?? "") || a - b);
  const ranks = new Float64Array(names.length);
  order.forEach((code, rank) => {
    ranks[code] = names[code] === null ? Number.NaN : rank;
  });
  return new Float64Array(codes).map((code) => ranks[code] ?? Number.NaN);
}
