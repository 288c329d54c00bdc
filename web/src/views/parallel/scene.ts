// What of a trace is shown: which time, from where the axis counts, which drawings it allows. Pure.

import type { TraceAnswer } from "../../api/generated.ts";
import { isFlow, type NsWindow, type ParallelPage } from "../../state/parallel.ts";
import { findShownSteps, findTypical, originOf, type Step, windowOf } from "./steps.ts";

const NO_ENDS: readonly number[] = [];

export interface Scene {
  readonly window: NsWindow;
  readonly extent: NsWindow;
  readonly originNs: number;
  /** Of several steps in sight. */
  readonly stepEndsNs: readonly number[];
  /** The only step in sight; null: there are several, or none. */
  readonly step: number | null;
}

export function makeScene({ extent_ns }: TraceAnswer, steps: readonly Step[], wanted: NsWindow | null): Scene {
  const extent = { fromNs: 0, toNs: Math.max(1, extent_ns) };
  const typical = findTypical(steps);
  const window = wanted ?? windowOf(typical ? [typical] : [], extent);
  const shown = findShownSteps(steps, window);
  const isOne = shown !== null && shown[0] === shown[1];
  return {
    window,
    extent,
    originNs: originOf(steps, window, extent),
    stepEndsNs: isOne ? NO_ENDS : steps.map(({ toNs }) => toNs),
    step: isOne ? (steps[shown[0]]?.step ?? null) : null,
  };
}

/** A run without stages has one row of all ranks at that level: its ranks tell more. One without spans has only its flow. */
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
  return first === last ? `Step ${first}${isTypical ? ", the typical one" : ""}` : `Steps ${first} to ${last}`;
}
