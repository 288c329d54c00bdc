// Who holds which GPU at a moment of a what-if: spans of workloads on nodes, given places within each node. Draws nothing.

import type { HeldSpans, WhatIfCourse, WhatIfNode } from "../../../api/generated.ts";

/** A workload on some GPUs of one node for a while. */
export interface PlacedSpan {
  readonly node: number;
  readonly holder: number;
  /** GPUs of the node, as they are drawn: the lowest that are free then. */
  readonly slots: readonly number[];
  readonly fromAt: number;
  readonly toAt: number;
}

export const FREE = -1;
export const CLOSED = -2;

/** Spans come by their begin, so that whoever holds GPUs now has the same places in every course. */
export function placeSpans(spans: HeldSpans, nodes: readonly WhatIfNode[]): readonly PlacedSpan[] {
  const freeFrom = nodes.map(({ gpus }) => new Array<number>(gpus).fill(Number.NEGATIVE_INFINITY));
  return spans.node.map((node, at) => {
    const [fromAt, toAt] = [spans.from_at[at] ?? 0, spans.to_at[at] ?? 0];
    const places = freeFrom[node] ?? [];
    const slots: number[] = [];
    for (let slot = 0; slot < places.length && slots.length < (spans.gpus[at] ?? 0); slot += 1) {
      if ((places[slot] ?? 0) > fromAt) continue;
      places[slot] = toAt;
      slots.push(slot);
    }
    return { node, holder: spans.holder[at] ?? FREE, slots, fromAt, toAt };
  });
}

export interface Moment {
  /** By node, by GPU: a place in the course's holders, FREE or CLOSED. Empty where the node is not there. */
  readonly holders: readonly (readonly number[])[];
  readonly free: number;
  /** Free GPUs on nodes of which somebody else holds a part. */
  readonly scattered: number;
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
  let [free, scattered] = [0, 0];
  for (const row of holders) {
    const here = row.filter((holder) => holder === FREE).length;
    free += here;
    if (row.some((holder) => holder >= 0)) scattered += here;
  }
  return { holders, free, scattered };
}

/** Which GPUs of a node another would hold than as it is, in whatever order they stand. */
export function findOthers(before: readonly number[], after: readonly number[]): readonly boolean[] {
  const counts = new Map<number, number>();
  for (const holder of before) counts.set(holder, (counts.get(holder) ?? 0) + 1);
  return after.map((holder) => {
    const left = counts.get(holder) ?? 0;
    counts.set(holder, left - 1);
    return left <= 0;
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

export function columnsOf(gpus: number): number {
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
    const wide = columnsOf(node.gpus) * STEP_PX;
    if (node.partition !== partition) {
      partition = node.partition;
      y += rowPx;
      labels.push({ text: partition, y: y + LABEL_PX - 5 });
      [x, y] = [0, y + LABEL_PX];
    } else if (x + wide > width) {
      [x, y] = [0, y + rowPx];
    }
    boxes.push({ node: place, x, y });
    x += wide + NODE_GAP_PX;
  });
  return { boxes, labels, height: Math.max(0, y + rowPx) };
}
