// Windows of time: zoomed, moved, kept within a trace, and the ways back. Pure.

import type { NsWindow } from "../../../state/parallel.ts";

/** Nothing is looked at closer. */
const LEAST_NS = 200;

/** `aboutNs` stays where it is on the screen; a factor below 1 looks closer. */
export function zoomWindow({ fromNs, toNs }: NsWindow, aboutNs: number, factor: number, extent: NsWindow): NsWindow {
  const length = Math.max(LEAST_NS, (toNs - fromNs) * factor);
  const share = (aboutNs - fromNs) / (toNs - fromNs);
  return keepWithin({ fromNs: aboutNs - share * length, toNs: aboutNs + (1 - share) * length }, extent);
}

/** `share` of its own length, to the right where positive. */
export function moveWindow({ fromNs, toNs }: NsWindow, share: number, extent: NsWindow): NsWindow {
  const shift = (toNs - fromNs) * share;
  return keepWithin({ fromNs: fromNs + shift, toNs: toNs + shift }, extent);
}

/** As long as before where that fits, else the whole extent with a little air. */
export function keepWithin(window: NsWindow, extent: NsWindow): NsWindow {
  const air = (extent.toNs - extent.fromNs) * 0.02;
  const [first, last] = [extent.fromNs - air, extent.toNs + air];
  const length = window.toNs - window.fromNs;
  if (length >= last - first) return { fromNs: first, toNs: last };
  const fromNs = Math.min(Math.max(window.fromNs, first), last - length);
  return { fromNs, toNs: fromNs + length };
}

/** A window around some spans, with a share of air on both sides. */
export function aroundWindow(fromNs: number, toNs: number, air: number, extent: NsWindow): NsWindow {
  const room = Math.max(LEAST_NS / 2, (toNs - fromNs) * air);
  return keepWithin({ fromNs: fromNs - room, toNs: toNs + room }, extent);
}

export function isSameWindow(a: NsWindow, b: NsWindow): boolean {
  const least = (a.toNs - a.fromNs) / 1e4;
  return Math.abs(a.fromNs - b.fromNs) <= least && Math.abs(a.toNs - b.toNs) <= least;
}

export interface WindowHistory {
  /** Null is the trace's typical step. */
  readonly past: readonly (NsWindow | null)[];
  readonly future: readonly (NsWindow | null)[];
}

export const NO_HISTORY: WindowHistory = { past: [], future: [] };
const MOST_PAST = 50;

export function goOn({ past }: WindowHistory, current: NsWindow | null): WindowHistory {
  return { past: [...past, current].slice(-MOST_PAST), future: [] };
}

export interface Stepped {
  readonly history: WindowHistory;
  readonly window: NsWindow | null;
}

/** One step back or forward; null where there is none. */
export function stepHistory(history: WindowHistory, current: NsWindow | null, way: "back" | "forward"): Stepped | null {
  const { past, future } = history;
  const window = way === "back" ? past.at(-1) : future.at(-1);
  if (window === undefined) return null;
  return {
    window,
    history:
      way === "back"
        ? { past: past.slice(0, -1), future: [...future, current] }
        : { past: [...past, current], future: future.slice(0, -1) },
  };
}
