import { describe, expect, it } from "vitest";
import type { FlowAnswer, FlowNode } from "../../../api/generated.ts";
import { writeFlowSvg } from "./export.ts";
import { listNodes } from "./flow-table.tsx";
import { findNodeInRow, fitLabel, placeShards } from "./geometry.ts";
import { layOut } from "./layout.ts";
import { isShown, splitColor } from "./looks.ts";

function node(block: number, label = "MatMul"): FlowNode {
  return {
    label,
    block,
    name: null,
    kind: "operator",
    namespace: "",
    parent: null,
    opens: null,
    count: 1,
    operators: 1,
    matches: 0,
    types: {},
    marks: [],
    shards: null,
    shape: null,
    data_type: null,
    message: null,
    module: null,
    span: null,
    start_ns: null,
    end_ns: null,
    duration_ns: null,
  };
}

const FLOW: FlowAnswer = {
  is_recorded: true,
  is_captured: false,
  at: null,
  operators: 6,
  stages: [
    { stage: 0, ranks: [0] },
    { stage: 1, ranks: [1] },
  ],
  blocks: [
    { stage: 0, operators: 3, after: [] },
    { stage: 1, operators: 2, after: [0] },
    { stage: 0, operators: 1, after: [0, 1] },
  ],
  nodes: [node(0), node(0), node(0, "Send"), node(1, "Receive"), node(1), node(2)],
  edges: [
    { source: 0, target: 1, edge_class: "data", count: 1, shard: [4, 1], is_long: false },
    { source: 1, target: 2, edge_class: "data", count: 1, shard: null, is_long: false },
    { source: 2, target: 3, edge_class: "send_receive", count: 1, shard: null, is_long: false },
    { source: 3, target: 4, edge_class: "data", count: 1, shard: null, is_long: false },
    { source: 0, target: 5, edge_class: "activation_gradient", count: 1, shard: null, is_long: true },
  ],
  namespaces: [],
  opened: [],
};

describe("the layout of a flow", () => {
  const layout = layOut(FLOW);

  it("has no edge that points left", () => {
    for (const { source, target } of FLOW.edges) {
      expect((layout.x[source] ?? 0) + (layout.width[source] ?? 0)).toBeLessThan(layout.x[target] ?? 0);
    }
  });

  it("has a row per stage and starts a block after the blocks that it waits for", () => {
    const [first, second, third] = layout.blocks;
    expect(first?.y).toBe(third?.y);
    expect(second?.y).toBeGreaterThan((first?.y ?? 0) + (first?.height ?? 0));
    expect(second?.x).toBeGreaterThan((first?.x ?? 0) + (first?.width ?? 0));
    expect(third?.x).toBeGreaterThan((second?.x ?? 0) + (second?.width ?? 0));
  });

  it("keeps nodes within the frame of their block", () => {
    FLOW.nodes.forEach(({ block }, at) => {
      const box = layout.blocks[block];
      expect(layout.x[at]).toBeGreaterThan(box?.x ?? 0);
      expect((layout.x[at] ?? 0) + (layout.width[at] ?? 0)).toBeLessThan((box?.x ?? 0) + (box?.width ?? 0));
    });
  });

  it("hides long edges until their class is selected", () => {
    const long = FLOW.edges[4];
    expect(long && isShown(long, new Set())).toBe(false);
    expect(long && isShown(long, new Set(["activation_gradient"]))).toBe(true);
  });

  it("colors dimensions by their number of splits", () => {
    expect(new Set([1, 2, 4, 8, 16].map(splitColor)).size).toBe(5);
    expect(splitColor(64)).toBe(splitColor(16));
  });
});

describe("a flow", () => {
  const layout = layOut(FLOW);

  it("truncates long names, never the number of stacked nodes", () => {
    const long = { ...node(0, "a name that does not fit at all"), count: 24 };
    const { label, suffix } = fitLabel(long, 110);
    expect(label.endsWith("…")).toBe(true);
    expect(label.length + suffix.length).toBeLessThanOrEqual(Math.floor((110 - 16) / 6.4));
    expect(suffix).toBe(" ×24");
  });

  it("finds nodes in the rows above and below", () => {
    expect(findNodeInRow(layout, 2, 1)).toBe(3);
    expect(findNodeInRow(layout, 3, -1)).toBe(2);
    expect(findNodeInRow(layout, 4, 1)).toBeNull();
  });

  it("stacks the shards of one node", () => {
    const shard = { source: 0, target: 2, edge_class: "data", count: 1, shard: [1], is_long: false } as const;
    const edges = [shard, { ...shard, source: 1 }].map((edge) => ({ ...edge, shard: [...edge.shard] }));
    expect([...placeShards(edges).values()]).toEqual([0, 1]);
  });

  it("is listed in its table with splits and inputs", () => {
    const rows = listNodes(FLOW, "");
    expect(rows).toHaveLength(FLOW.nodes.length);
    expect(rows[1]).toMatchObject({ stage: 0, splits: "4 × 1", from: "MatMul" });
    // Long edges are left out, as in the drawing.
    expect(rows[5]?.from).toBeNull();
    expect(listNodes(FLOW, "searched")).toHaveLength(0);
  });

  it("is exported whole, whatever is visible", () => {
    const nodes = FLOW.nodes.map((original, at) =>
      at === 3 ? { ...original, label: "a < b", count: 2, marks: [{ mark: "tp" as const, count: 3 }] } : original,
    );
    const flow = { ...FLOW, nodes };
    const svg = writeFlowSvg({ flow, layout, title: "x & y", selected: null, shown: new Set(), ink: (css) => css });
    expect(svg.match(/<text x="9"/g)).toHaveLength(nodes.length);
    expect(svg.match(/<path d="M/g)).toHaveLength(4);
    for (const part of ["x &amp; y", "a &lt; b", "Stage 1", "split 4 × 1", " ×2", "tensor parallel ×3"])
      expect(svg).toContain(part);
  });
});
