// The distribution of values along an axis: its limits, and the number of rows per bin. Column code.

import type { NumberColumn } from "../../../api/columns.ts";

/** Places along it are 0–1. */
export interface Axis {
  readonly kind: "linear" | "log";
  readonly min: number;
  readonly max: number;
}

export interface Histogram {
  readonly axis: Axis;
  /** All rows that count, and those of them that the filters let through, by part of the axis. */
  readonly all: Uint32Array;
  readonly kept: Uint32Array;
  /** How many of them have a value. */
  readonly allCount: number;
  readonly keptCount: number;
  /** Of all values; they may lie beyond the axis, and are then counted at its ends. NaN where there is none. */
  readonly least: number;
  readonly largest: number;
}

export const BINS = 48;

/** 1 for each row that is left out, and 1 for each that is drawn; null: none is left out, all are drawn. */
export interface RowMasks {
  readonly filtered: Uint8Array | null;
  readonly drawn: Uint8Array | null;
}

export interface Extent {
  /** Both NaN where there is no value. */
  readonly min: number;
  readonly max: number;
  /** The least that is above 0; NaN where there is none. */
  readonly minPositive: number;
}

export function findExtent(values: NumberColumn, { filtered, drawn }: RowMasks): Extent {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  let minPositive = Number.POSITIVE_INFINITY;
  for (let row = 0; row < values.length; row += 1) {
    if ((drawn !== null && drawn[row] === 0) || (filtered !== null && filtered[row] === 1)) continue;
    const value = values[row] ?? Number.NaN;
    // Comparisons with NaN are false: the missing pass by.
    if (value < min) min = value;
    if (value > max) max = value;
    if (value > 0 && value < minPositive) minPositive = value;
  }
  const orMissing = (value: number) => (Number.isFinite(value) ? value : Number.NaN);
  return { min: orMissing(min), max: orMissing(max), minPositive: orMissing(minPositive) };
}

/** Below this share of the greatest value a logarithm shows little but noise. */
const LEAST_LOG_RATIO = 1e-4;

/** An axis from `min` to `max`; a logarithmic one begins above 0. */
export function makeAxis(kind: Axis["kind"], min: number, max: number, minPositive: number): Axis {
  const top = Math.max(min, max);
  if (kind === "linear" || !(top > 0)) return { kind: "linear", min, max: top };
  const least = Math.max(Number.isNaN(minPositive) ? top : minPositive, top * LEAST_LOG_RATIO);
  return { kind: "log", min: min > 0 ? min : Math.min(least, top), max: top };
}

export function placeOn({ kind, min, max }: Axis, value: number): number {
  if (!(max > min)) return value < min ? 0 : 1;
  const place =
    kind === "log" ? Math.log(Math.max(value, min) / min) / Math.log(max / min) : (value - min) / (max - min);
  return Math.min(1, Math.max(0, place));
}

export function valueOn({ kind, min, max }: Axis, place: number): number {
  return kind === "log" ? min * (max / min) ** place : min + (max - min) * place;
}

export function countBins(values: NumberColumn, axis: Axis, { filtered, drawn }: RowMasks): Histogram {
  const { kind, min, max } = axis;
  const all = new Uint32Array(BINS);
  const kept = new Uint32Array(BINS);
  let allCount = 0;
  let keptCount = 0;
  let least = Number.NaN;
  let largest = Number.NaN;
  const factor = max > min ? BINS / (kind === "log" ? Math.log(max / min) : max - min) : 0;
  const isLog = kind === "log";
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row] ?? Number.NaN;
    if (Number.isNaN(value) || (drawn !== null && drawn[row] === 0)) continue;
    let bin = factor === 0 ? 0 : isLog ? (value > min ? Math.log(value / min) * factor : 0) : (value - min) * factor;
    bin = bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin | 0;
    all[bin] = (all[bin] ?? 0) + 1;
    allCount += 1;
    if (!(value >= least)) least = value;
    if (!(value <= largest)) largest = value;
    if (filtered !== null && filtered[row] === 1) continue;
    kept[bin] = (kept[bin] ?? 0) + 1;
    keptCount += 1;
  }
  return { axis, all, kept, allCount, keptCount, least, largest };
}
