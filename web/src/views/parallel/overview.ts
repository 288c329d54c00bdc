// Places on the overview of a whole trace. Pure.

import type { TraceOverview } from "../../api/traces-client.ts";
import type { NsWindow } from "../../state/parallel.ts";

/** Shares of the whole trace, 0–1. */
export interface ShareRange {
  readonly from: number;
  readonly to: number;
}

export function toShares({ fromNs, toNs }: NsWindow, extent: NsWindow): ShareRange {
  const length = Math.max(1, extent.toNs - extent.fromNs);
  const clamp = (share: number) => Math.min(1, Math.max(0, share));
  return { from: clamp((fromNs - extent.fromNs) / length), to: clamp((toNs - extent.fromNs) / length) };
}

export function toNsWindow({ from, to }: ShareRange, extent: NsWindow): NsWindow {
  const length = extent.toNs - extent.fromNs;
  return { fromNs: extent.fromNs + from * length, toNs: extent.fromNs + to * length };
}

/** A bin is idle if no row is busy for more than this share of it. */
const IDLE_BELOW = 0.02;
/** So few busy bins between two idle stretches do not part them. */
const MAX_BUSY_BINS = 3;
/** Shorter stretches are gaps within the work. */
const MIN_STRETCH = 0.08;

/** Long stretches of time in which nothing runs on any row. */
export function findIdleStretches({ rows, bins, compute, communication }: TraceOverview): readonly ShareRange[] {
  const isIdle = (bin: number) =>
    rows.every((_, row) => {
      const at = row * bins + bin;
      return (compute[at] || 0) + (communication[at] || 0) < IDLE_BELOW;
    });
  const runs: [number, number][] = [];
  for (let bin = 0; bin < bins; bin += 1) {
    if (!isIdle(bin)) continue;
    const last = runs.at(-1);
    if (last && bin - last[1] <= MAX_BUSY_BINS) last[1] = bin + 1;
    else runs.push([bin, bin + 1]);
  }
  return runs
    .filter(([from, to]) => (to - from) / bins >= MIN_STRETCH)
    .map(([from, to]) => ({ from: from / bins, to: to / bins }));
}
