// The scale of the time bar: instants to pixels and back, and labeled instants. Pure; local time is passed in.

import { DAY_MS, MINUTE_MS, WEEK_MS } from "../../base/durations.ts";
import { toMinute } from "../../state/time.ts";

export interface TimeScale {
  readonly startMs: number;
  readonly endMs: number;
  /** Pixels. */
  readonly width: number;
}

export function toX({ startMs, endMs, width }: TimeScale, atMs: number): number {
  return endMs <= startMs ? width : ((atMs - startMs) / (endMs - startMs)) * width;
}

/** The whole minute at a place, within the bar. */
export function toMoment({ startMs, endMs, width }: TimeScale, x: number): number {
  const ratio = width <= 0 ? 1 : Math.min(1, Math.max(0, x / width));
  return toMinute(startMs + ratio * (endMs - startMs));
}

/** The step of a column that a place is in; null where there are none. */
export function findStep(timesMs: readonly number[], stepMs: number, atMs: number): number | null {
  const [first] = timesMs;
  if (first === undefined) return null;
  return Math.min(timesMs.length - 1, Math.max(0, Math.floor((atMs - first) / stepMs)));
}

export interface TimeLabel {
  readonly atMs: number;
  readonly isDay: boolean;
}

const LABEL_STEPS_MIN = [5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080] as const;

/** At round local times, at least `gapPx` apart. `offsetMs`: local time minus UTC. */
export function listLabels(scale: TimeScale, offsetMs: number, gapPx = 74): readonly TimeLabel[] {
  const { startMs, endMs, width } = scale;
  const mostLabels = Math.max(1, Math.floor(width / gapPx));
  const wantedMs = (endMs - startMs) / mostLabels;
  const nice = LABEL_STEPS_MIN.find((step) => step * MINUTE_MS >= wantedMs);
  const stepMs = nice === undefined ? Math.ceil(wantedMs / WEEK_MS) * WEEK_MS : nice * MINUTE_MS;
  const labels: TimeLabel[] = [];
  for (let local = Math.ceil((startMs + offsetMs) / stepMs) * stepMs; local <= endMs + offsetMs; local += stepMs) {
    const atMs = local - offsetMs;
    const x = toX(scale, atMs);
    // A label stands around its place: at the very ends it would be cut.
    if (x >= gapPx / 3 && x <= width - gapPx / 3) labels.push({ atMs, isDay: local % DAY_MS === 0 });
  }
  return labels;
}

/** Bars of a column as one outline, from the bottom up: far cheaper than an element each. */
export function drawBars(
  scale: TimeScale,
  timesMs: readonly number[],
  stepMs: number,
  heights: readonly number[],
  size: number,
): string {
  const parts: string[] = [];
  const gap = (stepMs / (scale.endMs - scale.startMs)) * scale.width > 3 ? 1 : 0;
  timesMs.forEach((time, index) => {
    const left = Math.max(0, toX(scale, time));
    const right = Math.min(scale.width, toX(scale, time + stepMs)) - gap;
    const top = size - (heights[index] ?? 0) * size;
    if (right > left && top < size) parts.push(`M${round(left)} ${size}V${round(top)}H${round(right)}V${size}Z`);
  });
  return parts.join("");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
