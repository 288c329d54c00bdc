// Formats numbers for people: grouped, with units, in tabular digits. Times are in time.ts.

import type { Quantity } from "./catalogue.ts";

export type { Quantity };

/** Shown for an unknown value, which is never 0. */
export const MISSING = "–";

/** A non-breaking space keeps a number and its unit on one line. */
const NBSP = "\u00a0";

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function isKnown(value: number | null | undefined): value is number {
  return value !== null && value !== undefined && Number.isFinite(value);
}

export function formatCount(value: number | null | undefined): string {
  return isKnown(value) ? grouped.format(value) : MISSING;
}

/** `3 GPUs`, `1 GPU`. */
export function formatPlural(value: number, one: string, many = `${one}s`): string {
  return `${grouped.format(value)}${NBSP}${value === 1 ? one : many}`;
}

/** A ratio 0–1 as a whole percentage; small values are not rounded to 0. */
export function formatRatio(ratio: number | null | undefined): string {
  if (!isKnown(ratio)) return MISSING;
  if (ratio > 0 && ratio < 0.005) return `<1${NBSP}%`;
  return `${Math.round(ratio * 100)}${NBSP}%`;
}

/** Three significant digits with the largest prefix that leaves at least 1. */
function formatScaled(value: number, step: number, prefixes: readonly string[], unit: string): string {
  let scaled = value;
  let index = 0;
  while (Math.abs(scaled) >= step * 0.9995 && index < prefixes.length - 1) {
    scaled /= step;
    index += 1;
  }
  const digits = index === 0 || Math.abs(scaled) >= 99.95 ? 0 : 1;
  return `${scaled.toFixed(digits)}${NBSP}${prefixes[index] ?? ""}${unit}`;
}

const DECIMAL = ["", "k", "M", "G", "T", "P"];
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

export function formatWatts(watts: number | null | undefined): string {
  return isKnown(watts) ? formatScaled(watts, 1000, DECIMAL, "W") : MISSING;
}

export function formatBytes(bytes: number | null | undefined): string {
  return isKnown(bytes) ? formatScaled(bytes, 1024, BINARY, "B") : MISSING;
}

export function formatFlops(perSecond: number | null | undefined): string {
  return isKnown(perSecond) ? formatScaled(perSecond, 1000, DECIMAL, "FLOP/s") : MISSING;
}

/** Hours, with a decimal below ten: `0.4`, `9.9`, `27`. The same as `format_hours` of the server. */
export function formatHours(hours: number | null | undefined): string {
  if (!isKnown(hours)) return MISSING;
  if (hours <= 0) return "0";
  if (hours < 0.05) return "<0.1";
  return hours < 9.95 ? hours.toFixed(1) : grouped.format(hours);
}

export function formatGpuHours(hours: number | null | undefined): string {
  return isKnown(hours) ? `${formatHours(hours)}${NBSP}GPU-hours` : MISSING;
}

/** Any metric's value, given in the canonical unit of the catalogue. */
export function formatQuantity(value: number | null | undefined, unit: Quantity): string {
  if (!isKnown(value)) return MISSING;
  switch (unit) {
    case "ratio":
      return formatRatio(value);
    case "watts":
      return formatWatts(value);
    case "bytes":
      return formatBytes(value);
    case "bytes_per_second":
      return formatScaled(value, 1000, DECIMAL, "B/s");
    case "joules":
      return formatScaled(value, 1000, DECIMAL, "J");
    case "hertz":
      return formatScaled(value, 1000, DECIMAL, "Hz");
    case "celsius":
      return `${Math.round(value)}${NBSP}°C`;
    case "seconds":
      return `${value.toFixed(value < 10 ? 1 : 0)}${NBSP}s`;
    case "count":
      return formatCount(value);
  }
}
