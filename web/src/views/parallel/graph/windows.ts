// Time windows: zoom, pan, clamp to the trace, and their history. Pure.

import type { NsWindow } from "../../../state/parallel.ts";

/** The shortest window. */
const MIN_LENGTH_NS = 200;

/** `aboutNs` keeps its place on the screen; a factor below 1 zooms in. */
export function zoomWindow({ fromNs, toNs }: NsWindow, aboutNs: number, factor: number, extent: NsWindow): NsWindow {
  const length = Math.max(MIN_LENGTH_NS, (toNs - fromNs) * factor);
  const share = (aboutNs - fromNs) / (toNs - fromNs);
  return clampWindow({ fromNs: aboutNs - share * length, toNs: aboutNs + (1 - share) * length }, extent);
}

/** Pans by a share of its length, to the right where positive. */
export function moveWindow({ fromNs, toNs }: NsWindow, share: number, extent: NsWindow): NsWindow {
  const shift = (toNs - fromNs) * share;
  return clampWindow({ fromNs: fromNs + shift, toNs: toNs + shift }, extent);
}

/** Keeps the length where it fits, else the whole extent with a margin. */
export function clampWindow(window: NsWindow, extent: NsWindow): NsWindow {
  const margin = (extent.toNs - extent.fromNs) * 0.02;
  const [first, last] = [extent.fromNs - margin, extent.toNs + margin];
  const length = window.toNs - window.fromNs;
  if (length >= last - first) return { fromNs: first, toNs: last };
  const fromNs = Math.min(Math.max(window.fromNs, first), last - length);
  return { fromNs, toNs: fromNs + length };
}

/** A window around spans, padded by a share of their length on both sides. */
export function padWindow(fromNs: number, toNs: number, share: number, extent: NsWindow): NsWindow {
  const padding = Math.max(MIN_LENGTH_NS / 2, (toNs - fromNs) * share);
  return clampWindow({ fromNs: fromNs - padding, toNs: toNs + padding }, extent);
}

export function isSameWindow(a: NsWindow, b: NsWindow): boolean {
  const tolerance = (a.toNs - a.fromNs) / 1e4;
  return Math.abs(a.fromNs - b.fromNs) <= tolerance && Math.abs(a.toNs - b.toNs) <= tolerance;
}

export interface WindowHistory {
  /** Null: the typical step of the trace. */
  readonly past: readonly (NsWindow | null)[];
  readonly future: readonly (NsWindow | null)[];
}

export const NO_HISTORY: WindowHistory = { past: [], future: [] };
const MAX_HISTORY = 50;

export function pushWindow({ past }: WindowHistory, current: NsWindow | null): WindowHistory {
  return { past: [...past, current].slice(-MAX_HISTORY), future: [] };
}

export interface HistoryStep {
  readonly history: WindowHistory;
  readonly window: NsWindow | null;
}

/** One step back or forward; null where there is none. */
export function stepHistory(
  history: WindowHistory,
  current: NsWindow | null,
  direction: "back" | "forward",
): HistoryStep | null {
  const { past, future } = history;
  const window = direction === "back" ? past.at(-1) : future.at(-1);
  if (window === undefined) return null;
  return {
    window,
    history:
      direction === "back"
        ? { past: past.slice(0, -1), future: [...future, current] }
        : { past: [...past, current], future: future.slice(0, -1) },
  };
}
