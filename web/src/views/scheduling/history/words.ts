// Formats sizes, ranges and measured values of job traces.

import type { Measured, TraceDescription } from "../../../api/generated.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";

export type SizeUnit = TraceDescription["size_unit"];

const SINGULAR: Readonly<Record<SizeUnit, string>> = { gpus: "GPU", nodes: "node", processors: "processor" };

export function formatUnits(count: number, unit: SizeUnit): string {
  return `${formatCount(count)} ${SINGULAR[unit]}${count === 1 ? "" : "s"}`;
}

export function nameUnit(unit: SizeUnit): string {
  return `${SINGULAR[unit]}s`;
}

/** The units of all traces: one, or several joined by “or”. */
export function nameUnits(traces: readonly TraceDescription[]): string {
  const units = [...new Set(traces.map(({ size_unit }) => nameUnit(size_unit)))];
  return units.length === 1 ? (units[0] ?? "") : units.join(" or ");
}

export function formatRange(low: number, high: number, format: (value: number) => string): string {
  return low === high ? format(low) : `${format(low)} – ${format(high)}`;
}

export function formatMeasured(
  { value, low, high }: Measured,
  format: (value: number) => string = formatRatio,
): string {
  return isBounded(low) && isBounded(high) ? `${format(value)} (${format(low)} to ${format(high)})` : format(value);
}

export function toInterval({ low, high }: Measured): readonly [number, number] | null {
  return isBounded(low) && isBounded(high) ? [low, high] : null;
}

function isBounded(value: number | null | undefined): value is number {
  return value !== null && value !== undefined;
}
