// The scales of all charts: the position of a value between 0 and 1, and round tick values.

import { DAY_MS, DAY_S, HOUR_MS, HOUR_S, MINUTE_MS, SECOND_MS } from "../base/durations.ts";
import { formatCount } from "../base/format.ts";
import { formatDuration, formatShortDuration } from "../base/time.ts";

export interface Tick {
  readonly at: number;
  readonly text: string;
}

export interface Scale {
  readonly low: number;
  readonly high: number;
  readonly ticks: readonly Tick[];
  /** 0 at the low end, 1 at the high one. */
  place(value: number): number;
  /** The value that stands there. */
  valueAt(place: number): number;
  say(value: number): string;
}

const ROUND_SECONDS = [1, 10, 60, 600, 3600, 36_000, 86_400, 864_000, 8_640_000, 86_400_000];

/** Seconds from `low` (at least 1) to `high` on a logarithmic axis. What is below stands at its beginning. */
export function durationScale(low: number, high: number): Scale {
  return logScale(low, high, ROUND_SECONDS, formatShortDuration);
}

/** Counts, such as sizes, on a logarithmic axis: powers of two as long as they are few. */
export function countScale(low: number, high: number): Scale {
  const ticks = high <= 256 ? powers(2, 9) : high <= 65_536 ? powers(4, 9) : powers(10, 9);
  return logScale(low, high, ticks, formatCount);
}

function powers(base: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, power) => base ** power);
}

function logScale(low: number, high: number, round: readonly number[], say: (value: number) => string): Scale {
  const least = Math.max(1, low);
  const most = Math.max(least * 2, high);
  const span = Math.log(most / least);
  return {
    low: least,
    high: most,
    ticks: round.filter((at) => at >= least && at <= most).map((at) => ({ at, text: say(at) })),
    place: (value) => Math.min(1, Math.max(0, Math.log(Math.max(value, least) / least) / span)),
    valueAt: (place) => least * Math.exp(place * span),
    say,
  };
}

/** Round values within [low, high], at most about `most` of them. */
export function listNumbers(low: number, high: number, most: number): readonly number[] {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return Number.isFinite(low) ? [low] : [];
  const raw = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10) * power;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, at) => (first + at) * step);
}

/** `unit`: ticks are round multiples of it; 60 for seconds that are written as minutes. */
export function linearScale(low: number, high: number, most: number, say: (value: number) => string, unit = 1): Scale {
  const ticks = listNumbers(low / unit, high / unit, most).map((round) => round * unit);
  return evenScale(
    low,
    high,
    ticks.map((at) => ({ at, text: say(at) })),
    say,
  );
}

/** Ticks of bytes are multiples of powers of 1024; of everything else, of 1. */
export function bytesUnit(high: number, unit: string | null): number {
  return unit === "bytes" ? 1024 ** Math.floor(Math.log(Math.max(1, high)) / Math.log(1024)) : 1;
}

const DURATION_STEPS = [
  ...[1, 2, 5, 10, 20, 30].map((step) => step),
  ...[1, 2, 5, 10, 20, 30].map((step) => step * 60),
  ...[1, 2, 3, 6, 12].map((step) => step * HOUR_S),
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((step) => step * DAY_S),
];

/** Seconds from 0 on an even axis, written at round times. */
export function evenDurationScale(high: number, most: number): Scale {
  const step = DURATION_STEPS.find((stepS) => stepS * most >= high) ?? high;
  const ticks = Array.from({ length: Math.floor(high / step) + 1 }, (_, at) => ({
    at: at * step,
    text: at === 0 ? "0" : formatDuration(at * step),
  }));
  return evenScale(0, high, ticks, formatDuration);
}

const TIME_STEPS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((step) => step * SECOND_MS),
  ...[1, 2, 5, 10, 15, 30].map((step) => step * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((step) => step * HOUR_MS),
  ...[1, 2, 7, 14, 28].map((step) => step * DAY_MS),
];

/** Round local times, from seconds to weeks, at most `most` of them. `offsetMs`: local time minus UTC. */
export function listTimes(startMs: number, endMs: number, most: number, offsetMs: number): readonly Tick[] {
  const idealStepMs = (endMs - startMs) / Math.max(1, most);
  const step = TIME_STEPS_MS.find((stepMs) => stepMs >= idealStepMs) ?? Math.ceil(idealStepMs / DAY_MS) * DAY_MS;
  const ticks: Tick[] = [];
  for (let local = Math.ceil((startMs + offsetMs) / step) * step; local <= endMs + offsetMs; local += step) {
    ticks.push({ at: local - offsetMs, text: formatTickTime(local, step) });
  }
  return ticks;
}

/** Of a local time written as if it were UTC. */
function formatTickTime(localMs: number, stepMs: number): string {
  const date = new Date(localMs);
  if (stepMs >= DAY_MS || localMs % DAY_MS === 0) {
    return new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" }).format(date);
  }
  return date.toISOString().slice(11, stepMs < MINUTE_MS ? 19 : 16);
}

/** Unix ms, at round local times. */
export function timeScale(
  startMs: number,
  endMs: number,
  most: number,
  say: (value: number) => string = String,
): Scale {
  const offsetMs = -new Date(startMs).getTimezoneOffset() * MINUTE_MS;
  return evenScale(startMs, endMs, listTimes(startMs, endMs, most, offsetMs), say);
}

function evenScale(low: number, high: number, ticks: readonly Tick[], say: (value: number) => string): Scale {
  const span = high - low || 1;
  return {
    low,
    high,
    ticks,
    place: (value) => Math.min(1, Math.max(0, (value - low) / span)),
    valueAt: (place) => low + place * span,
    say,
  };
}

/** Ticks without those that would touch the one before: closer than `least`, where `toPlace` puts them. */
export function thinTicks(ticks: readonly Tick[], toPlace: (value: number) => number, least: number): readonly Tick[] {
  let last = Number.NEGATIVE_INFINITY;
  return ticks.filter(({ at }) => {
    const place = toPlace(at);
    if (place - last < least) return false;
    last = place;
    return true;
  });
}

/** The index of the last of rising values that is not above the wanted one; −1: all are. */
export function findLast(values: ArrayLike<number>, wanted: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] ?? 0) <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
