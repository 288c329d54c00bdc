// Colors, shapes and titles of an execution flow.

import type { FlowEdge, FlowMark, FlowNode } from "../../../api/generated.ts";
import { KIND_COLORS } from "../graph/kinds.ts";

export const MARK_TITLES: Readonly<Record<FlowMark, string>> = {
  pp: "pipeline message",
  tp: "tensor parallel",
  dp: "data parallel",
  ep: "expert parallel",
  redistribution: "redistribution",
  gradient_aggregation: "gradient aggregation",
  communication: "communication",
};
export const MARKS = Object.keys(MARK_TITLES) as readonly FlowMark[];

export const MARK_COLORS: Readonly<Record<FlowMark, string>> = {
  pp: "light-dark(#8a5cf0, #b794f6)",
  tp: "light-dark(#c2410c, #fb923c)",
  dp: "light-dark(#0e7490, #22d3ee)",
  ep: "light-dark(#a16207, #facc15)",
  redistribution: "light-dark(#be185d, #f472b6)",
  gradient_aggregation: "light-dark(#15803d, #86efac)",
  communication: "light-dark(#5f6b7a, #8a94a4)",
};

/** Shapes within ±5, so that marks can be distinguished without color. */
export const MARK_PATHS: Readonly<Record<FlowMark, string>> = {
  pp: "M-5-4L4 0L-5 4Z",
  tp: "M-4-4H4V4H-4Z",
  dp: "M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0-4.5 0Z",
  ep: "M-5 0L-2.5-4.3H2.5L5 0L2.5 4.3H-2.5Z",
  redistribution: "M0-5L5 0L0 5L-5 0Z",
  gradient_aggregation: "M-4.5-4.5H4.5L1 0L4.5 4.5H-4.5L-1 0Z",
  communication: "M0-4.5L4.5 4H-4.5Z",
};

/** Long edges of these classes are drawn only when selected. */
export const LONG_CLASSES = ["activation_gradient", "update_state", "load", "depend", "hub", "data"] as const;
export type LongClass = (typeof LONG_CLASSES)[number];
export const CLASS_TITLES: Readonly<Record<LongClass, string>> = {
  activation_gradient: "activation → gradient",
  update_state: "UpdateState",
  load: "Load",
  depend: "Depend",
  hub: "to and from hubs",
  data: "data to later blocks",
};

export function isShown({ edge_class, is_long }: FlowEdge, shown: ReadonlySet<string>): boolean {
  return !is_long || shown.has(edge_class);
}

/** The color of forward, backward or optimizer, guessed from names. */
export function toneOf({ namespace, label, kind }: FlowNode): string {
  if (kind === "ordering") return "var(--faint)";
  const path = `${namespace}/${label}`;
  if (/(^|\/)Gradients|backward|bwd|\bgrad/i.test(path)) return KIND_COLORS.backward;
  if (/optimizer|momentum|adam/i.test(path)) return KIND_COLORS.optimizer;
  return KIND_COLORS.forward;
}

const SPLITS = [
  "var(--track)",
  "light-dark(#93c5fd, #1d4f91)",
  "light-dark(#3b82f6, #3b82f6)",
  "light-dark(#1d4ed8, #7fb3ff)",
  "light-dark(#1e3a8a, #c7deff)",
] as const;

/** The color of a dimension by its number of splits: 1, 2, 4, 8, 16 and more. */
export function splitColor(parts: number): string {
  const step = Math.min(SPLITS.length - 1, Math.max(0, Math.ceil(Math.log2(Math.max(1, parts)))));
  return SPLITS[step] ?? SPLITS[0];
}
