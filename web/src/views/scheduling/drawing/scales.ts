// Axes of the charts: where a value stands between 0 and 1, and which values are written beside it.

import { formatCount } from "../../../base/format.ts";
import { formatDuration, formatShortDuration } from "../../../base/time.ts";
import { listNumbers } from "../../../charts/number-axis.tsx";
import { listTicks } from "../../../charts/time-axis.tsx";

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

export function linearScale(low: number, high: number, most: number, say: (value: number) => string): Scale {
  return evenScale(
    low,
    high,
    listNumbers(low, high, most).map((at) => ({ at, text: say(at) })),
    say,
  );
}

const DURATION_STEPS = [
  ...[1, 2, 5, 10, 20, 30].map((step) => step),
  ...[1, 2, 5, 10, 20, 30].map((step) => step * 60),
  ...[1, 2, 3, 6, 12].map((step) => step * 3600),
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((step) => step * 86_400),
];

/** Seconds from 0 on an even axis, written at round times. */
export function evenDurationScale(high: number, most: number): Scale {
  const step = DURATION_STEPS.find((each) => each * most >= high) ?? high;
  const ticks = Array.from({ length: Math.floor(high / step) + 1 }, (_, at) => ({
    at: at * step,
    text: at === 0 ? "0" : formatDuration(at * step),
  }));
  return evenScale(0, high, ticks, formatDuration);
}

/** Unix ms, at round local times. */
export function timeScale(startMs: number, endMs: number, most: number, say: (value: number) => string): Scale {
  const offsetMs = -new Date(startMs).getTimezoneOffset() * 60_000;
  const ticks = listTicks(startMs, endMs, most, offsetMs).map(({ atMs, text }) => ({ at: atMs, text }));
  return evenScale(startMs, endMs, ticks, say);
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
