// Maps numbers to colors: limits of the color scale, the scale between them, and the color of every row. Column code.

import type { NumberColumn } from "../../../../api/columns.ts";
import type { Quantity } from "../../../../base/format.ts";
import { sortFloats } from "../../../../base/sort-floats.ts";
import type { PackedColor } from "../../../../layers/squares/marks.ts";
import type { NumberAttribute } from "../../../../state/attributes.ts";
import { type ColorSettings, NUMBER_SCHEMES, type NumberScheme } from "../../../../state/color.ts";
import { type Axis, BINS, findExtent, makeAxis, type RowMasks, valueOn } from "../../filter/histogram.ts";
import { NO_COLOR } from "./name-color.ts";
import { makeRamp, RAMP_STEPS } from "./schemes.ts";

/** The ends of the ramp where nobody says otherwise: a ratio goes from 0 to 1, a temperature from its least value. */
const NATURAL_ENDS: Partial<Readonly<Record<Quantity, readonly [min: number | null, max: number | null]>>> = {
  ratio: [0, 1],
  celsius: [null, null],
  hertz: [null, null],
};
const FROM_ZERO = [0, null] as const;

export interface NumberColors {
  readonly axis: Axis;
  /** By row; `NO_COLOR` where there is no value. */
  readonly colors: Uint32Array;
  /** Along the axis, one for each part of its histogram. */
  readonly ramp: readonly PackedColor[];
}

export function numberScheme({ scheme }: ColorSettings): NumberScheme {
  return NUMBER_SCHEMES.find((candidate) => candidate === scheme) ?? "viridis";
}

export function computeNumberColors(
  values: NumberColumn,
  attribute: NumberAttribute,
  settings: ColorSettings,
  masks: RowMasks,
): NumberColors {
  const rows: RowMasks = settings.isRemapped ? masks : { ...masks, filtered: null };
  const axis = chooseAxis(values, attribute, settings, rows);
  const { kind, bins } = settings.scale;
  const ramp = makeRamp(numberScheme(settings), settings.isReversed, kind === "quantize" ? bins : RAMP_STEPS);
  const limits = kind === "quantile" ? computeRanks(values, axis, rows) : null;
  const colorAll = (column: NumberColumn): Uint32Array => {
    const colors = new Uint32Array(column.length);
    if (limits !== null) colorByRank(column, limits, ramp, colors);
    else colorAlong(column, axis, ramp, colors);
    return colors;
  };
  const middles = Float64Array.from({ length: BINS }, (_, bin) => valueOn(axis, (bin + 0.5) / BINS));
  return { axis, colors: colorAll(values), ramp: [...colorAll(middles)] };
}

function chooseAxis(
  values: NumberColumn,
  { unit }: NumberAttribute,
  { min, max, scale, isRemapped }: ColorSettings,
  rows: RowMasks,
): Axis {
  const extent = findExtent(values, rows);
  const [least, most] = isRemapped ? [null, null] : (NATURAL_ENDS[unit] ?? FROM_ZERO);
  const orZero = (value: number) => (Number.isNaN(value) ? 0 : value);
  const low = min ?? least ?? orZero(extent.min);
  const ignoresOutliers = unit === "seconds" && scale.kind !== "quantile" && scale.kind !== "log";
  const high = max ?? most ?? (ignoresOutliers ? findCommonMost(values, rows) : null) ?? orZero(extent.max);
  // An end that somebody set stays where it is; the other one gives way.
  const [from, to] = low <= high ? [low, high] : min !== null ? [low, low] : [high, high];
  return makeAxis(scale.kind === "log" ? "log" : "linear", from, to, extent.minPositive);
}

/** A duration is an outlier beyond this many interquartile ranges (Tukey's outer fence), */
const FENCE = 3;
/** and outliers are few: */
const FEW = 0.1;
const FEWEST_VALUES = 8;

/**
 * The largest duration that is not far out; null where none is. One workload that has waited for a day would else darken
 * all that have waited for hours. A workload counts once, however many units it asks for.
 */
function findCommonMost(values: NumberColumn, rows: RowMasks): number | null {
  const ranked = [...new Set(pickValues(values, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, rows))];
  if (ranked.length < FEWEST_VALUES) return null;
  const at = (share: number) => ranked[Math.round(share * (ranked.length - 1))] ?? 0;
  const fence = at(0.75) + FENCE * (at(0.75) - at(0.25));
  const common = ranked.findLastIndex((value) => value <= fence);
  return common < ranked.length - 1 && common >= ranked.length * (1 - FEW) - 1 ? (ranked[common] ?? null) : null;
}

function colorAlong(values: NumberColumn, axis: Axis, ramp: Uint32Array, colors: Uint32Array): void {
  const { min, max } = axis;
  const isLog = axis.kind === "log";
  const last = ramp.length - 1;
  const span = isLog ? Math.log(max / min) : max - min;
  const factor = span > 0 ? ramp.length / span : 0;
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row] ?? Number.NaN;
    if (Number.isNaN(value)) colors[row] = NO_COLOR;
    else if (value < min) colors[row] = ramp[0] ?? 0;
    else if (factor === 0 || value >= max) colors[row] = ramp[last] ?? 0;
    else {
      const step = ((isLog ? Math.log(value / min) : value - min) * factor) | 0;
      colors[row] = ramp[Math.min(step, last)] ?? 0;
    }
  }
}

const RANKS = 64;

/** In rising order, those within the ends. */
function pickValues(values: NumberColumn, min: number, max: number, { filtered, drawn }: RowMasks): Float32Array {
  const picked = new Float32Array(values.length);
  let count = 0;
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row] ?? Number.NaN;
    if ((drawn !== null && drawn[row] === 0) || (filtered !== null && filtered[row] === 1)) continue;
    if (value >= min && value <= max) {
      picked[count] = value;
      count += 1;
    }
  }
  return sortFloats(picked.subarray(0, count));
}

/** The values at the ends of equally large parts of the rows, within the axis; empty where there is none. */
function computeRanks(values: NumberColumn, { min, max }: Axis, rows: RowMasks): Float64Array {
  const ranked = pickValues(values, min, max, rows);
  const count = ranked.length;
  const limits = new Float64Array(count === 0 ? 0 : RANKS - 1);
  for (let rank = 0; rank < limits.length; rank += 1) {
    limits[rank] = ranked[Math.min(count - 1, Math.ceil(((rank + 1) * count) / RANKS))] ?? 0;
  }
  return limits;
}

function colorByRank(values: NumberColumn, limits: Float64Array, ramp: Uint32Array, colors: Uint32Array): void {
  const parts = limits.length + 1;
  const colorOf = Uint32Array.from({ length: parts }, (_, part) => {
    return ramp[parts === 1 ? ramp.length - 1 : Math.round((part / (parts - 1)) * (ramp.length - 1))] ?? 0;
  });
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row] ?? Number.NaN;
    if (Number.isNaN(value)) {
      colors[row] = NO_COLOR;
      continue;
    }
    let low = 0;
    let high = limits.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (value >= (limits[middle] ?? 0)) low = middle + 1;
      else high = middle;
    }
    colors[row] = colorOf[low] ?? 0;
  }
}
