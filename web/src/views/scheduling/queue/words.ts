// Words and scales of the queue: spans with a sign, the shared axis of starts.

import type { WaitKind } from "../../../api/generated.ts";
import { formatShortDuration } from "../../../base/time.ts";

export { nativeId } from "../../../base/workload-id.ts";

const HOUR_MS = 3_600_000;

/** What somebody waits for, in words that follow "waits for". */
export const WAITS_FOR: Readonly<Record<WaitKind, string>> = {
  room: "room",
  held: "its release",
  dependency: "a dependency",
  limit: "a limit",
  begin_time: "its begin time",
  reservation: "a reservation",
  other: "something else",
};

/** `+2 h`, `−15 min`, `±0`. */
export function formatChange(seconds: number): string {
  if (Math.abs(seconds) < 30) return "±0";
  return `${seconds > 0 ? "+" : "−"}${formatShortDuration(Math.abs(seconds))}`;
}

export interface StartAxis {
  readonly nowMs: number;
  readonly endMs: number;
  /** 0–1; times further on are nearer together, so that minutes and days fit one axis. */
  place(atMs: number): number;
  readonly ticks: readonly { readonly atMs: number; readonly title: string }[];
}

const TICKS_H: readonly (readonly [number, string])[] = [
  [1, "1 h"],
  [6, "6 h"],
  [24, "1 d"],
  [72, "3 d"],
  [168, "7 d"],
  [720, "30 d"],
];

export function makeAxis(nowMs: number, times: readonly number[]): StartAxis {
  const endMs = Math.max(nowMs + 2 * HOUR_MS, ...times);
  const place = (atMs: number) => Math.sqrt(Math.min(1, Math.max(0, (atMs - nowMs) / (endMs - nowMs))));
  const ticks = TICKS_H.map(([hours, title]) => ({ atMs: nowMs + hours * HOUR_MS, title }));
  return { nowMs, endMs, place, ticks: ticks.filter(({ atMs }) => atMs < endMs) };
}
