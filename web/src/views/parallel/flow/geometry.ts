// How a node's name is cut and where an edge runs: for the drawing on the page and for files alike.

import type { FlowEdge, FlowNode } from "../../../api/generated.ts";
import { CELL, type FlowLayout, NODE_HEIGHT } from "./layout.ts";

const LETTER = 6.4;
/** Tensors into one node that stand below one another; what is more is left out. */
export const MOST_SHARDS = 4;

/** The name as far as it fits, and how many are stacked. */
export function labelOf(node: FlowNode, width: number): { readonly label: string; readonly suffix: string } {
  const suffix = node.count > 1 ? ` ×${node.count}` : "";
  const letters = Math.floor((width - 16) / LETTER) - suffix.length;
  const label = node.label.length > letters ? `${node.label.slice(0, Math.max(3, letters - 1))}…` : node.label;
  return { label, suffix };
}

/** The path of an edge. What passes over other nodes goes above them. */
export function wayOf(edge: FlowEdge, { x, y, width }: FlowLayout): string {
  const fromX = (x[edge.source] ?? 0) + (width[edge.source] ?? 0);
  const fromY = (y[edge.source] ?? 0) + NODE_HEIGHT / 2;
  const toX = x[edge.target] ?? 0;
  const toY = (y[edge.target] ?? 0) + NODE_HEIGHT / 2;
  const reach = Math.max(14, Math.min(60, (toX - fromX) / 2));
  const lift = edge.is_long && Math.abs(fromY - toY) < 1 ? NODE_HEIGHT + 10 : 0;
  return lift
    ? `M${fromX} ${fromY}C${fromX + 20} ${fromY - lift} ${toX - 20} ${toY - lift} ${toX} ${toY}`
    : `M${fromX} ${fromY}C${fromX + reach} ${fromY} ${toX - reach} ${toY} ${toX} ${toY}`;
}

/** The upper left of the cells that tell how an edge's tensor is split; `place`: how many stand above it. */
export function cellsAt(edge: FlowEdge, { x, y }: FlowLayout, place: number): readonly [number, number] {
  const toY = (y[edge.target] ?? 0) + NODE_HEIGHT / 2;
  return [
    (x[edge.target] ?? 0) - 5 - (edge.shard?.length ?? 0) * (CELL + 1),
    toY - CELL / 2 + (place === 0 ? 0 : place * (CELL + 2)),
  ];
}

/** Tensors that come into one node stand below one another. */
export function placeShards(edges: readonly FlowEdge[]): ReadonlyMap<FlowEdge, number> {
  const taken = new Map<number, number>();
  const places = new Map<FlowEdge, number>();
  for (const edge of edges) {
    if (edge.shard === null) continue;
    const place = taken.get(edge.target) ?? 0;
    taken.set(edge.target, place + 1);
    places.set(edge, place);
  }
  return places;
}

/** The node of another stage that is nearest in the drawing: what up and down lead to. */
export function nodeBeside({ x, y }: FlowLayout, at: number, way: -1 | 1): number | null {
  const [fromX, fromY] = [x[at] ?? 0, y[at] ?? 0];
  let best: number | null = null;
  let least = Number.POSITIVE_INFINITY;
  x.forEach((left, other) => {
    const down = ((y[other] ?? 0) - fromY) * way;
    if (down <= 1) return;
    const distance = Math.abs(left - fromX) + down;
    if (distance < least) [least, best] = [distance, other];
  });
  return best;
}
