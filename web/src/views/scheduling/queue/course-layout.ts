// The holder of each GPU at a moment of a what-if: assigns spans of workloads to GPUs of nodes. Draws nothing.

import type { HeldSpans, WhatIfCourse, WhatIfNode } from "../../../api/generated.ts";

/** A workload on some GPUs of one node for a time. */
export interface PlacedSpan {
  readonly node: number;
  readonly holder: number;
  /** Indices of the node's GPUs: the lowest that are free at the start. */
  readonly slots: readonly number[];
  readonly fromAt: number;
  readonly toAt: number;
}

export const FREE = -1;
export const CLOSED = -2;

/** Spans are sorted by start, so running workloads have the same GPUs with and without the change. */
export function placeSpans(spans: HeldSpans, nodes: readonly WhatIfNode[]): readonly PlacedSpan[] {
  const freeFrom = nodes.map(({ gpus }) => new Array<number>(gpus).fill(Number.NEGATIVE_INFINITY));
  return spans.node.map((node, at) => {
    const [fromAt, toAt] = [spans.from_at[at] ?? 0, spans.to_at[at] ?? 0];
    const freeTimes = freeFrom[node] ?? [];
    const slots: number[] = [];
    for (let slot = 0; slot < freeTimes.length && slots.length < (spans.gpus[at] ?? 0); slot += 1) {
      if ((freeTimes[slot] ?? 0) > fromAt) continue;
      freeTimes[slot] = toAt;
      slots.push(slot);
    }
    return { node, holder: spans.holder[at] ?? FREE, slots, fromAt, toAt };
  });
}

export interface Moment {
  /** By node, by GPU: an index of the course's holders, FREE or CLOSED. Empty where the node does not exist. */
  readonly holders: readonly (readonly number[])[];
  readonly free: number;
  /** Free GPUs on nodes whose other GPUs are held. */
  readonly onPartlyHeldNodes: number;
}

export function readMoment(
  course: WhatIfCourse,
  placed: readonly PlacedSpan[],
  isChanged: boolean,
  atMs: number,
): Moment {
  const holders = course.nodes.map((node) => {
    if (node.is_added && !isChanged) return [];
    const isOpen = isChanged ? node.will_be_open : node.is_open;
    return new Array<number>(node.gpus).fill(isOpen ? FREE : CLOSED);
  });
  for (const { node, holder, slots, fromAt, toAt } of placed) {
    if (fromAt > atMs || toAt <= atMs) continue;
    const row = holders[node];
    if (row) for (const slot of slots) row[slot] = holder;
  }
  let [free, onPartlyHeldNodes] = [0, 0];
  for (const row of holders) {
    const freeGpus = row.filter((holder) => holder === FREE).length;
    free += freeGpus;
    if (row.some((holder) => holder >= 0)) onPartlyHeldNodes += freeGpus;
  }
  return { holders, free, onPartlyHeldNodes };
}

/** For each GPU of a node: whether its holder changes. Ignores the order of GPUs. */
export function findChangedHolders(before: readonly number[], after: readonly number[]): readonly boolean[] {
  const counts = new Map<number, number>();
  for (const holder of before) counts.set(holder, (counts.get(holder) ?? 0) + 1);
  return after.map((holder) => {
    const remaining = counts.get(holder) ?? 0;
    counts.set(holder, remaining - 1);
    return remaining <= 0;
  });
}

export interface NodeBox {
  readonly node: number;
  readonly x: number;
  readonly y: number;
}

export interface CourseLayout {
  readonly boxes: readonly NodeBox[];
  readonly labels: readonly { readonly text: string; readonly y: number }[];
  readonly height: number;
}

export const CELL_PX = 6;
export const STEP_PX = 7;
const NODE_GAP_PX = 5;
const LABEL_PX = 16;
const ROWS = 2;

export function countColumns(gpus: number): number {
  return Math.max(1, Math.ceil(gpus / ROWS));
}

/** Nodes as blocks two GPUs high, row by row within their partitions. */
export function layOutNodes(nodes: readonly WhatIfNode[], width: number): CourseLayout {
  const boxes: NodeBox[] = [];
  const labels: { text: string; y: number }[] = [];
  const rowPx = ROWS * STEP_PX + NODE_GAP_PX;
  let [x, y] = [0, -rowPx];
  let partition: string | null = null;
  nodes.forEach((node, place) => {
    const nodeWidth = countColumns(node.gpus) * STEP_PX;
    if (node.partition !== partition) {
      partition = node.partition;
      y += rowPx;
      labels.push({ text: partition, y: y + LABEL_PX - 5 });
      [x, y] = [0, y + LABEL_PX];
    } else if (x + nodeWidth > width) {
      [x, y] = [0, y + rowPx];
    }
    boxes.push({ node: place, x, y });
    x += nodeWidth + NODE_GAP_PX;
  });
  return { boxes, labels, height: Math.max(0, y + rowPx) };
}
