// Formats of values, estimates, ranks and windows.

import type { DiagnosedMetric, DiagnosedUnit, FindingNumber } from "../../api/generated.ts";
import { DAY_MS } from "../../base/durations.ts";
import { formatCount, formatQuantity, isKnown, MISSING, type Quantity } from "../../base/format.ts";

const QUANTITIES: readonly string[] = [
  "ratio",
  "watts",
  "joules",
  "bytes",
  "bytes_per_second",
  "hertz",
  "celsius",
  "seconds",
  "count",
] satisfies readonly Quantity[];

export function formatValue(value: number | null | undefined, unit: string | undefined): string {
  if (!isKnown(value)) return MISSING;
  if (unit !== undefined && QUANTITIES.includes(unit)) return formatQuantity(value, unit as Quantity);
  const text = Math.abs(value) >= 100 ? formatCount(value) : String(Number(value.toPrecision(3)));
  return unit ? `${text}\u00a0${unit.replaceAll("_", " ")}` : text;
}

/** `27 % (26 % – 27 %)`. */
export function formatEstimate({ value, low, high, unit }: FindingNumber): string {
  const text = formatValue(value, unit);
  return low === null || high === null ? text : `${text} (${formatValue(low, unit)} – ${formatValue(high, unit)})`;
}

export function describeRank(unit: DiagnosedUnit): string {
  const parts = [
    unit.global_rank === null ? null : `rank ${unit.global_rank}`,
    unit.local_rank === null ? null : `local rank ${unit.local_rank}`,
  ].filter((part) => part !== null);
  return parts.join(" · ");
}

export function findMetric(metrics: readonly DiagnosedMetric[], name: string | null): DiagnosedMetric | undefined {
  return metrics.find((metric) => metric.name === name);
}

/** `p < 0.001`, `p = 0.03`. */
export function formatPValue(p: number): string {
  return p < 0.001 ? "p < 0.001" : `p = ${p.toPrecision(2)}`;
}

const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const SECOND = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** `09:12 – 09:47`, with dates where it spans several days. */
export function formatWindow(fromMs: number, toMs: number): string {
  const isLong = DAY.format(fromMs) !== DAY.format(toMs) || toMs - fromMs > DAY_MS;
  const format = (ms: number) =>
    isLong ? `${DAY.format(ms)} ${TIME.format(ms)}` : toMs - fromMs < 600_000 ? SECOND.format(ms) : TIME.format(ms);
  return `${format(fromMs)} – ${format(toMs)}`;
}
