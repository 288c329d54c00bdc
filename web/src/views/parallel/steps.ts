// Steps of a trace over all ranks: their windows and the parts of their time. Pure.

import type { TraceSteps } from "../../api/traces-client.ts";
import type { NsWindow } from "../../state/parallel.ts";

export interface Step extends NsWindow {
  readonly step: number;
  /** Without long idle time around its activity. */
  readonly active: NsWindow;
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
    .map(([step, list]) => {
      const fromNs = Math.min(...list.map((at) => steps.startNs[at] ?? 0));
      const toNs = Math.max(...list.map((at) => (steps.startNs[at] ?? 0) + (steps.durationNs[at] ?? 0)));
      const [from, to] = [steps.activeStartNs[list[0] ?? 0], steps.activeEndNs[list[0] ?? 0]];
      return {
        step,
        fromNs,
        toNs,
        // Recorded reports do not have it.
        active: { fromNs: numberOr(from, fromNs), toNs: numberOr(to, toNs) },
        durationNs: mean(steps.durationNs, list),
        computeNs: mean(steps.computeNs, list),
        waitNs: mean(steps.waitNs, list),
        transferNs: mean(steps.transferNs, list),
        idleNs: mean(steps.idleNs, list),
      };
    });
}

function numberOr(value: number | undefined, other: number): number {
  return value === undefined || Number.isNaN(value) ? other : value;
}

/** The step of median duration, of those in which something runs: neither the first, which warms up, nor the worst. */
export function findTypical(steps: readonly Step[]): Step | null {
  const active = steps.filter(({ computeNs, waitNs, transferNs }) => computeNs + waitNs + transferNs > 0);
  const sorted = (active.length > 0 ? active : steps).toSorted((a, b) => a.durationNs - b.durationNs);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}

const MARGIN = 0.015;

/** The window of these steps with a margin, from their first activity to the last; the whole extent where there are none. */
export function windowOf(steps: readonly Step[], extent: NsWindow): NsWindow {
  if (steps.length === 0) return addMargin(extent);
  return addMargin({
    fromNs: Math.min(...steps.map(({ active }) => active.fromNs)),
    toNs: Math.max(...steps.map(({ active }) => active.toNs)),
  });
}

/** Idle time that a window leaves out; 0: none on that side. */
export interface CutIdle {
  readonly beforeNs: number;
  readonly afterNs: number;
}

/** Shorter idle time, as a share of the window, is not worth a label. */
const MIN_CUT = 0.2;

/**
 * What lies idle next to a window of single steps: the rest of its own steps, and of the trace before the first or after the last
 * step. Null: nothing long, or the window is not that of steps.
 */
export function findCut(steps: readonly Step[], window: NsWindow, extent: NsWindow): CutIdle | null {
  const shown = findShownSteps(steps, window);
  const [first, last] = shown === null ? [] : [steps[shown[0]], steps[shown[1]]];
  if (!first || !last) return null;
  const length = window.toNs - window.fromNs;
  const whole = windowOf([first, last], extent);
  const isAt = (a: number, b: number) => Math.abs(a - b) < length * MARGIN;
  const begin = first === steps[0] ? extent.fromNs : first.fromNs;
  const end = last === steps.at(-1) ? extent.toNs : last.toNs;
  const [beforeNs, afterNs] = [first.active.fromNs - begin, end - last.active.toNs];
  const cut = {
    beforeNs: isAt(window.fromNs, whole.fromNs) && beforeNs > MIN_CUT * length ? beforeNs : 0,
    afterNs: isAt(window.toNs, whole.toNs) && afterNs > MIN_CUT * length ? afterNs : 0,
  };
  return cut.beforeNs > 0 || cut.afterNs > 0 ? cut : null;
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
