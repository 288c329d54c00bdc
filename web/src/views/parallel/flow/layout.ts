// Where everything of an execution flow stands. One row per stage; a block begins at the right border of what it waits for;
// within a block nodes stand in columns by what they depend on. Edges never point left.

import type { FlowAnswer } from "../../../api/generated.ts";

export const NODE_HEIGHT = 26;
export const ROW_HEIGHT = 40;
const COLUMN_GAP = 20;
/** For the sharding of a tensor, a cell per dimension. */
export const CELL = 7;
const BLOCK_GAP = 34;
const BLOCK_AIR = 16;
const STAGE_GAP = 44;
const TOP = 30;
const MOST_ROWS = 9;
const LETTER = 6.4;
const [NARROWEST, WIDEST] = [44, 150];

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
  return Math.min(WIDEST, Math.max(NARROWEST, letters * LETTER + 18));
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
  // First within blocks, each from its own corner.
  const sizes = members.map((nodes) => placeBlock(nodes, columns, dimensions, width, x, y));
  const blocks = placeBlocks(flow, sizes);
  blocks.forEach((box, block) => {
    for (const at of members[block] ?? []) {
      x[at] = (x[at] ?? 0) + box.x + BLOCK_AIR;
      y[at] = (y[at] ?? 0) + box.y + BLOCK_AIR;
    }
  });
  const right = Math.max(0, ...blocks.map((box) => box.x + box.width));
  const stages = flow.stages.map(({ stage }) => {
    const own = blocks.filter((_, block) => (flow.blocks[block]?.stage ?? null) === stage);
    const top = Math.min(...own.map((box) => box.y));
    const height = Math.max(0, ...own.map((box) => box.height));
    return { x: 0, y: Number.isFinite(top) ? top : TOP, width: right, height };
  });
  const bottom = Math.max(TOP, ...stages.map((box) => box.y + box.height));
  return { x, y, width, blocks, stages, size: { width: right + BLOCK_GAP, height: bottom + STAGE_GAP } };
}

/** The longest way from the begin of its block to each node; nodes come in an order of execution. */
function findColumns({ nodes, edges }: FlowAnswer): Int32Array {
  const columns = new Int32Array(nodes.length);
  const into: number[][] = nodes.map(() => []);
  for (const { source, target } of edges) {
    if (nodes[source]?.block === nodes[target]?.block) into[target]?.push(source);
  }
  for (let at = 0; at < nodes.length; at += 1) {
    for (const source of into[at] ?? []) columns[at] = Math.max(columns[at] ?? 0, (columns[source] ?? 0) + 1);
  }
  return columns;
}

/** Of the tensors that come into each node: as much room is left before it. */
function countDimensions({ nodes, edges }: FlowAnswer): Uint8Array {
  const dimensions = new Uint8Array(nodes.length);
  for (const { target, shard } of edges) {
    dimensions[target] = Math.max(dimensions[target] ?? 0, Math.min(8, shard?.length ?? 0));
  }
  return dimensions;
}

/** Columns side by side; a column of many nodes is broken into several. */
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
    for (let from = 0; from < stack.length; from += MOST_ROWS) {
      const part = stack.slice(from, from + MOST_ROWS);
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
  return { width: Math.max(NARROWEST, left - COLUMN_GAP), height: (rows - 1) * ROW_HEIGHT + NODE_HEIGHT };
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
    top += Math.max(0, ...heights) + 2 * BLOCK_AIR + STAGE_GAP;
  }
  const placed: Box[] = [];
  blocks.forEach(({ stage, after }, at) => {
    const before = after.map((one) => placed[one]).map((box) => (box ? box.x + box.width + BLOCK_GAP : 0));
    const { width = 0, height = 0 } = sizes[at] ?? {};
    placed.push({
      x: Math.max(BLOCK_GAP, ...before),
      y: tops.get(stage) ?? TOP,
      width: width + 2 * BLOCK_AIR,
      height: height + 2 * BLOCK_AIR,
    });
  });
  return placed;
}
