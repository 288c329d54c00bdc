// Steps of a trace over all ranks: their windows and the parts of their time. Pure.

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
  const rowsOfStep = new Map<number, number[]>();
  for (let at = 0; at < steps.count; at += 1) {
    const list = rowsOfStep.get(steps.step[at] ?? 0) ?? [];
    list.push(at);
    rowsOfStep.set(steps.step[at] ?? 0, list);
  }
  const mean = (values: Float64Array, list: readonly number[]) =>
    list.reduce((sum, at) => sum + (values[at] || 0), 0) / list.length;
  return [...rowsOfStep]
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

/** The step of median duration: neither the first, which warms up, nor the worst. */
export function findTypical(steps: readonly Step[]): Step | null {
  const sorted = steps.toSorted((a, b) => a.durationNs - b.durationNs);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}

const MARGIN = 0.015;

/** The window of these steps with a margin; the whole extent where there are none. */
export function windowOf(steps: readonly Step[], extent: NsWindow): NsWindow {
  if (steps.length === 0) return addMargin(extent);
  return addMargin({
    fromNs: Math.min(...steps.map((step) => step.fromNs)),
    toNs: Math.max(...steps.map((step) => step.toNs)),
  });
}

function addMargin({ fromNs, toNs }: NsWindow): NsWindow {
  const margin = Math.max(1, (toNs - fromNs) * MARGIN);
  return { fromNs: fromNs - margin, toNs: toNs + margin };
}

/** Indices of the first and last step whose middle lies in the window; null: none. */
export function findShownSteps(steps: readonly Step[], { fromNs, toNs }: NsWindow): readonly [number, number] | null {
  const isIn = ({ fromNs: start, toNs: end }: Step) => (start + end) / 2 >= fromNs && (start + end) / 2 <= toNs;
  const first = steps.findIndex(isIn);
  if (first >= 0) return [first, steps.findLastIndex(isIn)];
  const middle = (fromNs + toNs) / 2;
  const within = steps.findIndex((step) => step.fromNs <= middle && step.toNs >= middle);
  return within >= 0 ? [within, within] : null;
}

/** The 0 of the time axis: the start of the first visible step. */
export function findOrigin(steps: readonly Step[], window: NsWindow, extent: NsWindow): number {
  const shown = findShownSteps(steps, window);
  return (shown && steps[shown[0]]?.fromNs) ?? extent.fromNs;
}
