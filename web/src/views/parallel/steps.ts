// Steps of a trace as the page speaks of them: over all ranks, with where they lie and what their time went into. Pure.

import type { TraceSteps } from "../../api/traces-client.ts";
import type { NsWindow } from "../../state/parallel.ts";

export interface Step extends NsWindow {
  readonly step: number;
  /** Means over ranks. */
  readonly durationNs: number;
  readonly computeNs: number;
  readonly waitNs: number;
  readonly transferNs: number;
  readonly idleNs: number;
}

export function listSteps(steps: TraceSteps): readonly Step[] {
  const places = new Map<number, number[]>();
  for (let at = 0; at < steps.count; at += 1) {
    const list = places.get(steps.step[at] ?? 0) ?? [];
    list.push(at);
    places.set(steps.step[at] ?? 0, list);
  }
  const mean = (values: Float64Array, list: readonly number[]) =>
    list.reduce((sum, at) => sum + (values[at] || 0), 0) / list.length;
  return [...places]
    .sort(([a], [b]) => a - b)
    .map(([step, list]) => ({
      step,
      fromNs: Math.min(...list.map((at) => steps.startNs[at] ?? 0)),
      toNs: Math.max(...list.map((at) => (steps.startNs[at] ?? 0) + (steps.durationNs[at] ?? 0))),
      durationNs: mean(steps.durationNs, list),
      computeNs: mean(steps.computeNs, list),
      waitNs: mean(steps.waitNs, list),
      transferNs: mean(steps.transferNs, list),
      idleNs: mean(steps.idleNs, list),
    }));
}

/** The one of median length: neither the first, which warms up, nor the worst. */
export function findTypical(steps: readonly Step[]): Step | null {
  const sorted = steps.toSorted((a, b) => a.durationNs - b.durationNs);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}

const AIR = 0.015;

/** A step with a little air, or several; the whole extent where there are no steps. */
export function windowOf(steps: readonly Step[], extent: NsWindow): NsWindow {
  if (steps.length === 0) return widen(extent);
  return widen({
    fromNs: Math.min(...steps.map((step) => step.fromNs)),
    toNs: Math.max(...steps.map((step) => step.toNs)),
  });
}

function widen({ fromNs, toNs }: NsWindow): NsWindow {
  const air = Math.max(1, (toNs - fromNs) * AIR);
  return { fromNs: fromNs - air, toNs: toNs + air };
}

/** Places of the steps whose middle lies in the window; null: none. */
export function findShownSteps(steps: readonly Step[], { fromNs, toNs }: NsWindow): readonly [number, number] | null {
  const isIn = ({ fromNs: start, toNs: end }: Step) => (start + end) / 2 >= fromNs && (start + end) / 2 <= toNs;
  const first = steps.findIndex(isIn);
  if (first >= 0) return [first, steps.findLastIndex(isIn)];
  const middle = (fromNs + toNs) / 2;
  const within = steps.findIndex((step) => step.fromNs <= middle && step.toNs >= middle);
  return within >= 0 ? [within, within] : null;
}

/** What the axis calls 0: the start of the first step in sight. */
export function originOf(steps: readonly Step[], window: NsWindow, extent: NsWindow): number {
  const shown = findShownSteps(steps, window);
  return (shown && steps[shown[0]]?.fromNs) ?? extent.fromNs;
}
