// Formats and parses numbers with units, and rounds them to the precision of a drag.

import { formatQuantity, type Quantity } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import type { Range } from "../../../state/range.ts";
import { type Axis, type Histogram, placeOn, valueOn } from "./histogram.ts";

export function formatNumber(value: number | null, unit: Quantity): string {
  return unit === "seconds" ? formatDuration(value) : formatQuantity(value, unit);
}

/** `12 % – 34 %`, `from 300 W`, `up to 15 %`. */
export function formatRange({ min, max }: Range, unit: Quantity): string {
  if (min === null) return `up to ${formatNumber(max, unit)}`;
  if (max === null) return `from ${formatNumber(min, unit)}`;
  return min === max ? formatNumber(min, unit) : `${formatNumber(min, unit)} – ${formatNumber(max, unit)}`;
}

/** The ends of the axis, with `<` and `>` where values lie beyond them. */
export function formatEnds({ axis, least, largest }: Histogram, unit: Quantity): readonly [low: string, high: string] {
  const low = formatNumber(axis.min, unit);
  const high = formatNumber(axis.max, unit);
  // Columns are of 32-bit floats: their last digits say nothing.
  const slack = Math.abs(axis.max - axis.min) * 1e-6;
  return [least < axis.min - slack ? `< ${low}` : low, largest > axis.max + slack ? `> ${high}` : high];
}

/** What people type: the factor from it to the canonical unit, and its sign. */
export const TYPED_UNITS: Readonly<Record<Quantity, readonly [factor: number, sign: string]>> = {
  ratio: [0.01, "%"],
  watts: [1, "W"],
  joules: [1e3, "kJ"],
  bytes: [2 ** 30, "GiB"],
  bytes_per_second: [1e9, "GB/s"],
  hertz: [1e6, "MHz"],
  celsius: [1, "°C"],
  seconds: [60, "min"],
  count: [1, ""],
};

export function toTyped(value: number, unit: Quantity): number {
  return round(value / TYPED_UNITS[unit][0]);
}

export function fromTyped(typed: number, unit: Quantity): number {
  return round(typed * TYPED_UNITS[unit][0]);
}

/** Without the dust of multiplying: 0.07 × 100 is 7. */
function round(value: number): number {
  return Number(value.toPrecision(12));
}

/** Parts of an axis that a hand can hit. */
const FINEST = 200;

/** The range between two places of an axis, at round numbers; an end of the axis is not a limit. */
export function rangeBetween(axis: Axis, from: number, to: number): Range | null {
  const min = from <= 0 ? null : roundOn(axis, from);
  const max = to >= 1 ? null : roundOn(axis, to);
  if (min === null && max === null) return null;
  return min !== null && max !== null && min > max ? { min: max, max: min } : { min, max };
}

function roundOn(axis: Axis, place: number): number {
  const value = valueOn(axis, place);
  if (axis.kind === "log") return Number(value.toPrecision(3));
  const step = (axis.max - axis.min) / FINEST;
  if (!(step > 0)) return value;
  const power = 10 ** Math.floor(Math.log10(step));
  const even = [1, 2, 5, 10].find((factor) => factor * power >= step * (1 - 1e-9)) ?? 10;
  return round(Math.round(value / (even * power)) * even * power);
}

export function placesOf(axis: Axis, { min, max }: Range): { readonly from: number; readonly to: number } {
  return { from: min === null ? 0 : placeOn(axis, min), to: max === null ? 1 : placeOn(axis, max) };
}
