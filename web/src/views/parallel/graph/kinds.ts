// Kinds of spans with their colors and titles, shared by the graph, the steps, the tables and the legend.

import { type NameColumn, nameAt } from "../../../api/columns.ts";

export const SPAN_KINDS = [
  "forward",
  "backward",
  "optimizer",
  "compute",
  "communication",
  "waiting",
  "memory",
  "data",
  "launch",
  "host",
  "annotation",
] as const;
export type SpanKind = (typeof SPAN_KINDS)[number];

/** CSS colors for both themes. */
export const KIND_COLORS: Readonly<Record<SpanKind, string>> = {
  forward: "light-dark(#1f9e74, #4fd1a5)",
  backward: "light-dark(#2f7fe0, #5aa9ff)",
  optimizer: "light-dark(#7b8494, #8d97a6)",
  compute: "light-dark(#3f8fa8, #6fc3df)",
  communication: "light-dark(#8a5cf0, #b794f6)",
  waiting: "light-dark(#d98a12, #ffb454)",
  memory: "light-dark(#b0699c, #e39ccb)",
  data: "light-dark(#8f8220, #d6c76a)",
  launch: "light-dark(#a9b2bf, #566071)",
  host: "light-dark(#93a0b3, #6b7789)",
  annotation: "light-dark(#a9b2bf, #566071)",
};

export const KIND_TITLES: Readonly<Record<SpanKind, string>> = {
  forward: "forward",
  backward: "backward",
  optimizer: "optimizer",
  compute: "compute",
  communication: "communication",
  waiting: "waiting",
  memory: "copies",
  data: "data loading",
  launch: "launches",
  host: "host",
  annotation: "annotations",
};

const KIND_OF_PHASE: Readonly<Record<string, SpanKind>> = {
  forward: "forward",
  backward: "backward",
  optimizer: "optimizer",
  data: "data",
};

const KIND_OF_CLASS: Readonly<Record<string, SpanKind>> = {
  compute: "compute",
  communication: "communication",
  memory: "memory",
  launch: "launch",
  host: "host",
  annotation: "annotation",
  phase: "host",
  step: "annotation",
};

export function kindOf(spanClass: string | null, phase: string | null): SpanKind {
  if (spanClass === "communication") return "communication";
  const phaseKind = phase === null ? undefined : KIND_OF_PHASE[phase];
  if (phaseKind && spanClass !== "memory" && spanClass !== "launch") return phaseKind;
  return KIND_OF_CLASS[spanClass ?? ""] ?? "host";
}

/** The kind of every span; one lookup per distinct pair of class and phase. */
export function kindsOf(spanClass: NameColumn, phase: NameColumn, count: number): readonly SpanKind[] {
  const cache = new Map<number, SpanKind>();
  const phases = phase.names.length;
  const kinds: SpanKind[] = [];
  for (let span = 0; span < count; span += 1) {
    const key = (spanClass.codes[span] ?? 0) * phases + (phase.codes[span] ?? 0);
    let kind = cache.get(key);
    if (kind === undefined) {
      kind = kindOf(nameAt(spanClass, span), nameAt(phase, span));
      cache.set(key, kind);
    }
    kinds.push(kind);
  }
  return kinds;
}
