// How sizes, classes and shares of traces are said.

import type { Measured, TraceDescription } from "../../../api/generated.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";

export type SizeUnit = TraceDescription["size_unit"];

const ONE: Readonly<Record<SizeUnit, string>> = { gpus: "GPU", nodes: "node", processors: "processor" };

export function sayUnits(count: number, unit: SizeUnit): string {
  return `${formatCount(count)} ${ONE[unit]}${count === 1 ? "" : "s"}`;
}

export function nameUnit(unit: SizeUnit): string {
  return `${ONE[unit]}s`;
}

/** The unit that all traces share, or that they differ. */
export function nameUnits(traces: readonly TraceDescription[]): string {
  const units = [...new Set(traces.map(({ size_unit }) => nameUnit(size_unit)))];
  return units.length === 1 ? (units[0] ?? "") : units.join(" or ");
}

export function sayRange(low: number, high: number, say: (value: number) => string): string {
  return low === high ? say(low) : `${say(low)} – ${say(high)}`;
}

export function sayMeasured({ value, low, high }: Measured, say: (value: number) => string = formatRatio): string {
  return isBounded(low) && isBounded(high) ? `${say(value)} (${say(low)} to ${say(high)})` : say(value);
}

export function barOf({ low, high }: Measured): readonly [number, number] | null {
  return isBounded(low) && isBounded(high) ? [low, high] : null;
}

function isBounded(value: number | null | undefined): value is number {
  return value !== null && value !== undefined;
}
