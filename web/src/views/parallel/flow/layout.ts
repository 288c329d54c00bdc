// Layout of an execution flow. One row per stage; a block starts right of the blocks that it waits for; within a block, nodes are
// in columns by their dependencies. Edges never point left.

import type { FlowAnswer } from "../../../api/generated.ts";

export const NODE_HEIGHT = 26;
export const ROW_HEIGHT = 40;
const COLUMN_GAP = 20;
/** For the sharding of a tensor, a cell per dimension. */
export const CELL = 7;
const BLOCK_GAP = 34;
const BLOCK_MARGIN = 16;
const STAGE_GAP = 44;
const TOP = 30;
const MAX_ROWS = 9;
const LETTER_PX = 6.4;
const [MIN_WIDTH, MAX_WIDTH] = [44, 150];

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface FlowLayout {
  /** Of every node: left, top, width. */
  readonly x: Float32Array;
  readonly y: Float32Array;
  readonly width: Float32Array;
  readonly blocks: readonly Box[];
  /** Top and height of every stage's row, in the order of the answer's stages. */
  readonly stages: readonly Box[];
  readonly size: { readonly width: number; readonly height: number };
}

export function widthOf(label: string, count: number): number {
  const letters = label.length + (count > 1 ? String(count).length + 2 : 0);
  return Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, letters * LETTER_PX + 18));
}

export function layOut(flow: FlowAnswer): FlowLayout {
  const count = flow.nodes.length;
  const columns = findColumns(flow);
  const dimensions = countDimensions(flow);
  const [x, y, width] = [new Float32Array(count), new Float32Array(count), new Float32Array(count)];
  const members: number[][] = flow.blocks.map(() => []);
  flow.nodes.forEach((node, at) => {
    width[at] = widthOf(node.label, node.count);
    members[node.block]?.push(at);
  });
  // First within blocks, relative to their corners.
  const sizes = members.map((nodes) => placeBlock(nodes, columns, dimensions, width, x, y));
  const blocks = placeBlocks(flow, sizes);
  blocks.forEach((box, block) => {
    for (const at of members[block] ?? []) {
      x[at] = (x[at] ?? 0) + box.x + BLOCK_MARGIN;
      y[at] = (y[at] ?? 0) + box.y + BLOCK_MARGIN;
    }
  });
  const right = Math.max(0, ...blocks.map((box) => box.x + box.width));
  const stages = flow.stages.map(({ stage }) => {
    const stageBlocks = blocks.filter((_, block) => (flow.blocks[block]?.stage ?? null) === stage);
    const top = Math.min(...stageBlocks.map((box) => box.y));
    const height = Math.max(0, ...stageBlocks.map((box) => box.height));
    return { x: 0, y: Number.isFinite(top) ? top : TOP, width: right, height };
  });
  const bottom = Math.max(TOP, ...stages.map((box) => box.y + box.height));
  return { x, y, width, blocks, stages, size: { width: right + BLOCK_GAP, height: bottom + STAGE_GAP } };
}

/** The longest path from the start of its block to each node; nodes are in execution order. */
function findColumns({ nodes, edges }: FlowAnswer): Int32Array {
  const columns = new Int32Array(nodes.length);
  const incoming: number[][] = nodes.map(() => []);
  for (const { source, target } of edges) {
    if (nodes[source]?.block === nodes[target]?.block) incoming[target]?.push(source);
  }
  for (let at = 0; at < nodes.length; at += 1) {
    for (const source of incoming[at] ?? []) columns[at] = Math.max(columns[at] ?? 0, (columns[source] ?? 0) + 1);
  }
  return columns;
}

/** The largest number of dimensions of the input tensors of each node, which need room before it. */
function countDimensions({ nodes, edges }: FlowAnswer): Uint8Array {
  const dimensions = new Uint8Array(nodes.length);
  for (const { target, shard } of edges) {
    dimensions[target] = Math.max(dimensions[target] ?? 0, Math.min(8, shard?.length ?? 0));
  }
  return dimensions;
}

/** Places the columns of a block; a column of many nodes is split into several. */
function placeBlock(
  nodes: readonly number[],
  columns: Int32Array,
  dimensions: Uint8Array,
  width: Float32Array,
  x: Float32Array,
  y: Float32Array,
): { readonly width: number; readonly height: number } {
  const stacks = new Map<number, number[]>();
  for (const at of nodes) {
    const column = columns[at] ?? 0;
    const stack = stacks.get(column);
    if (stack) stack.push(at);
    else stacks.set(column, [at]);
  }
  let left = 0;
  let rows = 1;
  for (const column of [...stacks.keys()].sort((a, b) => a - b)) {
    const stack = stacks.get(column) ?? [];
    for (let from = 0; from < stack.length; from += MAX_ROWS) {
      const part = stack.slice(from, from + MAX_ROWS);
      const cells = Math.max(...part.map((at) => dimensions[at] ?? 0));
      left += cells * (CELL + 1) + (cells > 0 ? 6 : 0);
      part.forEach((at, row) => {
        x[at] = left;
        y[at] = row * ROW_HEIGHT;
      });
      left += Math.max(...part.map((at) => width[at] ?? 0)) + COLUMN_GAP;
      rows = Math.max(rows, part.length);
    }
  }
  return { width: Math.max(MIN_WIDTH, left - COLUMN_GAP), height: (rows - 1) * ROW_HEIGHT + NODE_HEIGHT };
}

function placeBlocks(
  { blocks, stages }: FlowAnswer,
  sizes: readonly { readonly width: number; readonly height: number }[],
): readonly Box[] {
  const tops = new Map<number | null, number>();
  let top = TOP;
  for (const { stage } of stages) {
    tops.set(stage, top);
    const heights = blocks.map((block, at) => (block.stage === stage ? (sizes[at]?.height ?? 0) : 0));
    top += Math.max(0, ...heights) + 2 * BLOCK_MARGIN + STAGE_GAP;
  }
  const placed: Box[] = [];
  blocks.forEach(({ stage, after }, at) => {
    const before = after.map((block) => placed[block]).map((box) => (box ? box.x + box.width + BLOCK_GAP : 0));
    const { width = 0, height = 0 } = sizes[at] ?? {};
    placed.push({
      x: Math.max(BLOCK_GAP, ...before),
      y: tops.get(stage) ?? TOP,
      width: width + 2 * BLOCK_MARGIN,
      height: height + 2 * BLOCK_MARGIN,
    });
  });
  return placed;
}
