// Labels of the queue, signed durations, and the axis that all start bars share.

import type { QueueAnswer, QueueRow, WaitKind } from "../../../api/generated.ts";
import { HOUR_MS } from "../../../base/durations.ts";
import { formatCount } from "../../../base/format.ts";
import { formatShortDuration } from "../../../base/time.ts";

export { nativeId } from "../../../base/workload-id.ts";

/** What a workload waits for; follows "waits for". */
export const WAITS_FOR: Readonly<Record<WaitKind, string>> = {
  room: "free GPUs",
  held: "its release",
  dependency: "a dependency",
  limit: "a limit",
  begin_time: "its begin time",
  reservation: "a reservation",
  other: "something else",
};

/** The position in the queue, "held", or what else the workload waits for. */
export function describePosition({ position, waits_for }: Pick<QueueRow, "position" | "waits_for">): string {
  if (position !== null) return `position ${position}`;
  return waits_for === "held" ? "held" : `waits for ${WAITS_FOR[waits_for]}`;
}

export interface QueueSummary {
  readonly held: number;
  /** Neither in line for GPUs nor held. */
  readonly blocked: number;
  readonly longest: QueueRow | null;
}

export function summarizeQueue(rows: readonly QueueRow[]): QueueSummary {
  const notInLine = rows.filter(({ position }) => position === null);
  const held = notInLine.filter(({ waits_for }) => waits_for === "held").length;
  const longest = rows.reduce<QueueRow | null>(
    (longestRow, row) => ((row.waited_s ?? 0) > (longestRow?.waited_s ?? -1) ? row : longestRow),
    null,
  );
  return { held, blocked: notInLine.length - held, longest };
}

/** "3 for a dependency, 1 for a limit": all that are not in line for GPUs, and not held. */
export function describeBlocked(rows: readonly Pick<QueueRow, "position" | "waits_for">[]): string {
  const counts = new Map<string, number>();
  for (const { position, waits_for } of rows) {
    if (position !== null || waits_for === "held") continue;
    counts.set(WAITS_FOR[waits_for], (counts.get(WAITS_FOR[waits_for]) ?? 0) + 1);
  }
  return [...counts].map(([cause, count]) => `${formatCount(count)} for ${cause}`).join(", ");
}

export function describeCalibration({
  is_learned,
  calibrated_on,
}: Pick<QueueAnswer, "is_learned" | "calibrated_on">): string {
  if (!is_learned) return "rough forecasts: the run-time model is not trained yet";
  if (calibrated_on === 0) return "80 % intervals, not calibrated yet";
  return `80 % intervals, calibrated on ${formatCount(calibrated_on)} waits`;
}

/** `+2 h`, `−15 min`, `±0`. */
export function formatChange(seconds: number): string {
  if (Math.abs(seconds) < 30) return "±0";
  return `${seconds > 0 ? "+" : "−"}${formatShortDuration(Math.abs(seconds))}`;
}

export interface StartAxis {
  readonly nowMs: number;
  readonly endMs: number;
  /** 0–1; square root of the time from now, so that minutes and days fit one axis. */
  place(atMs: number): number;
  readonly ticks: readonly { readonly atMs: number; readonly title: string }[];
}

/** A letter of a tick's label, and the least space between two. */
const [LETTER_PX, LABEL_GAP_PX] = [6, 6];

/** The ticks whose labels fit side by side, after "now" at the start. */
export function fitTicks({ place, ticks }: StartAxis, widthPx: number): StartAxis["ticks"] {
  let end = "now".length * LETTER_PX;
  return ticks.filter(({ atMs, title }) => {
    const half = (title.length * LETTER_PX) / 2;
    const middle = place(atMs) * widthPx;
    if (middle - half < end + LABEL_GAP_PX || middle + half > widthPx + LABEL_GAP_PX) return false;
    end = middle + half;
    return true;
  });
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
