// Labels of nodes and paths of edges, shared by the page and by exported files.

import type { FlowEdge, FlowNode } from "../../../api/generated.ts";
import { CELL, type FlowLayout, NODE_HEIGHT } from "./layout.ts";

const LETTER_PX = 6.4;
/** The most input tensors of a node that are drawn, one below another. */
export const MAX_SHARDS = 4;

/** The name truncated to the width, and the number of stacked nodes. */
export function fitLabel(node: FlowNode, width: number): { readonly label: string; readonly suffix: string } {
  const suffix = node.count > 1 ? ` ×${node.count}` : "";
  const letters = Math.floor((width - 16) / LETTER_PX) - suffix.length;
  const label = node.label.length > letters ? `${node.label.slice(0, Math.max(3, letters - 1))}…` : node.label;
  return { label, suffix };
}

/** The path of an edge. Long edges go above the nodes between. */
export function edgePath(edge: FlowEdge, { x, y, width }: FlowLayout): string {
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

/** The upper left corner of the cells that show how an edge's tensor is split; `place`: the number of tensors above it. */
export function cellsAt(edge: FlowEdge, { x, y }: FlowLayout, place: number): readonly [number, number] {
  const toY = (y[edge.target] ?? 0) + NODE_HEIGHT / 2;
  return [
    (x[edge.target] ?? 0) - 5 - (edge.shard?.length ?? 0) * (CELL + 1),
    toY - CELL / 2 + (place === 0 ? 0 : place * (CELL + 2)),
  ];
}

/** Stacks the input tensors of a node. */
export function placeShards(edges: readonly FlowEdge[]): ReadonlyMap<FlowEdge, number> {
  const counts = new Map<number, number>();
  const places = new Map<FlowEdge, number>();
  for (const edge of edges) {
    if (edge.shard === null) continue;
    const place = counts.get(edge.target) ?? 0;
    counts.set(edge.target, place + 1);
    places.set(edge, place);
  }
  return places;
}

/** The nearest node in the rows above (-1) or below (1). */
export function findNodeInRow({ x, y }: FlowLayout, at: number, direction: -1 | 1): number | null {
  const [fromX, fromY] = [x[at] ?? 0, y[at] ?? 0];
  let nearest: number | null = null;
  let minDistance = Number.POSITIVE_INFINITY;
  x.forEach((left, other) => {
    const down = ((y[other] ?? 0) - fromY) * direction;
    if (down <= 1) return;
    const distance = Math.abs(left - fromX) + down;
    if (distance < minDistance) [minDistance, nearest] = [distance, other];
  });
  return nearest;
}
