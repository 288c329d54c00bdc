// How the page says its quantities, places and times.

import type { DiagnosedMetric, DiagnosedUnit, FindingNumber } from "../../api/generated.ts";
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

export function sayValue(value: number | null | undefined, unit: string | undefined): string {
  if (!isKnown(value)) return MISSING;
  if (unit !== undefined && QUANTITIES.includes(unit)) return formatQuantity(value, unit as Quantity);
  const text = Math.abs(value) >= 100 ? formatCount(value) : String(Number(value.toPrecision(3)));
  return unit ? `${text}\u00a0${unit.replaceAll("_", " ")}` : text;
}

/** `27 % (26 % – 27 %)`. */
export function sayEstimate({ value, low, high, unit }: FindingNumber): string {
  const said = sayValue(value, unit);
  return low === null || high === null ? said : `${said} (${sayValue(low, unit)} – ${sayValue(high, unit)})`;
}

export function sayPlace(unit: DiagnosedUnit): string {
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
export function sayP(p: number): string {
  return p < 0.001 ? "p < 0.001" : `p = ${p.toPrecision(2)}`;
}

const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const SECOND = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const DAY_MS = 86_400_000;

/** `09:12 – 09:47`, with days where it is longer than one. */
export function sayWindow(fromMs: number, toMs: number): string {
  const isLong = DAY.format(fromMs) !== DAY.format(toMs) || toMs - fromMs > DAY_MS;
  const say = (ms: number) =>
    isLong ? `${DAY.format(ms)} ${TIME.format(ms)}` : toMs - fromMs < 600_000 ? SECOND.format(ms) : TIME.format(ms);
  return `${say(fromMs)} – ${say(toMs)}`;
}
