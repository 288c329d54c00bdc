// Formats durations and instants. Instants are Unix milliseconds, durations seconds; both may be missing.

import { DAY_S, HOUR_S, MINUTE_S } from "./durations.ts";
import { isKnown, MISSING } from "./format.ts";

const NBSP = "\u00a0";

/** The two largest units: `42 s`, `11 min`, `2 h 11 min`, `1 d 4 h`, `63 d`. */
export function formatDuration(seconds: number | null | undefined): string {
  if (!isKnown(seconds)) return MISSING;
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE_S) return `${whole}${NBSP}s`;
  if (whole < 10 * MINUTE_S) return joined(whole, MINUTE_S, "min", 1, "s");
  if (whole < HOUR_S) return `${Math.floor(whole / MINUTE_S)}${NBSP}min`;
  if (whole < DAY_S) return joined(whole, HOUR_S, "h", MINUTE_S, "min");
  if (whole < 30 * DAY_S) return joined(whole, DAY_S, "d", HOUR_S, "h");
  return `${Math.floor(whole / DAY_S)}${NBSP}d`;
}

function joined(whole: number, largeS: number, large: string, smallS: number, small: string): string {
  const rest = Math.floor((whole % largeS) / smallS);
  const head = `${Math.floor(whole / largeS)}${NBSP}${large}`;
  return rest > 0 ? `${head}${NBSP}${rest}${NBSP}${small}` : head;
}

/** Only the largest unit, for tight places: `4 s`, `3 min`, `2 h`, `5 d`. */
export function formatShortDuration(seconds: number | null | undefined): string {
  if (!isKnown(seconds)) return MISSING;
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE_S) return `${whole}${NBSP}s`;
  if (whole < HOUR_S) return `${Math.floor(whole / MINUTE_S)}${NBSP}min`;
  if (whole < 2 * DAY_S) return `${Math.floor(whole / HOUR_S)}${NBSP}h`;
  return `${Math.floor(whole / DAY_S)}${NBSP}d`;
}

/** `4 s ago`, `in 3 min`, `now`. */
export function formatAgo(atMs: number | null | undefined, nowMs: number): string {
  if (!isKnown(atMs)) return MISSING;
  const deltaS = (nowMs - atMs) / 1000;
  if (Math.abs(deltaS) < 1) return "now";
  return deltaS > 0 ? `${formatShortDuration(deltaS)} ago` : `in ${formatShortDuration(-deltaS)}`;
}

/** `14 Nov 09:41`, with the year if it is not the current one. */
export function formatInstant(atMs: number | null | undefined, nowMs: number, timeZone?: string): string {
  if (!isKnown(atMs)) return MISSING;
  const sameYear = new Date(atMs).getUTCFullYear() === new Date(nowMs).getUTCFullYear();
  return new Intl.DateTimeFormat("en-GB", {
    day: "numeric",
    month: "short",
    ...(sameYear ? {} : { year: "numeric" }),
    hour: "2-digit",
    minute: "2-digit",
    timeZone,
  })
    .format(atMs)
    .replace(",", "");
}

/** To the second, with the time zone, for tooltips: `14 Nov 2026, 09:41:05 UTC`. */
export function formatExact(atMs: number | null | undefined, timeZone?: string): string {
  if (!isKnown(atMs)) return MISSING;
  return new Intl.DateTimeFormat("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZoneName: "short",
    timeZone,
  }).format(atMs);
}
