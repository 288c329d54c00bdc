// The visible part of a trace: its window, the origin of the axis, and the possible views. Pure.

import type { TraceAnswer } from "../../api/generated.ts";
import { isFlow, type NsWindow, type ParallelPage } from "../../state/parallel.ts";
import { type CutIdle, findCut, findOrigin, findShownSteps, findTypical, type Step, windowOf } from "./steps.ts";

const NO_ENDS: readonly number[] = [];

export interface Scene {
  readonly window: NsWindow;
  readonly extent: NsWindow;
  readonly originNs: number;
  /** Where several steps are visible. */
  readonly stepEndsNs: readonly number[];
  /** The only visible step; null: several, or none. */
  readonly step: number | null;
  readonly cut: CutIdle | null;
}

export function makeScene({ extent_ns }: TraceAnswer, steps: readonly Step[], requested: NsWindow | null): Scene {
  const extent = { fromNs: 0, toNs: Math.max(1, extent_ns) };
  const typical = findTypical(steps);
  const window = requested ?? windowOf(typical ? [typical] : [], extent);
  const shown = findShownSteps(steps, window);
  const isSingleStep = shown !== null && shown[0] === shown[1];
  return {
    window,
    extent,
    originNs: findOrigin(steps, window, extent),
    stepEndsNs: isSingleStep ? NO_ENDS : steps.map(({ toNs }) => toNs),
    step: isSingleStep ? (steps[shown[0]]?.step ?? null) : null,
    cut: findCut(steps, window, extent),
  };
}

/** Shows ranks for a trace without stages, and the execution flow for one without spans. */
export function fitPage(page: ParallelPage, answer: TraceAnswer | undefined): ParallelPage {
  if (answer && hasNoSpans(answer) && !isFlow(page.drawing)) return { ...page, drawing: "flow" };
  return page.level === "stage" && answer && answer.stages.length <= 1 ? { ...page, level: "rank" } : page;
}

export function hasNoSpans({ row }: TraceAnswer): boolean {
  return row.state === "ready" && row.spans === 0;
}

export function titleOf(steps: readonly Step[], { window }: Scene): string {
  const shown = findShownSteps(steps, window);
  if (shown === null) return steps.length === 0 ? "Whole trace" : "Between steps";
  const [first, last] = [steps[shown[0]]?.step, steps[shown[1]]?.step];
  const typical = findTypical(steps)?.step;
  const isTypical = first === typical && steps.length > 1;
  return first === last ? `Step ${first}${isTypical ? " (typical)" : ""}` : `Steps ${first} to ${last}`;
}
