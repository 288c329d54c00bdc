import { describe, expect, it } from "vitest";
import type { FlowAnswer, FlowNode } from "../../../api/generated.ts";
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
    span: null,
    start_ns: null,
    end_ns: null,
    duration_ns: null,
  };
}

const FLOW: FlowAnswer = {
  is_recorded: true,
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

  it("lets no edge point left", () => {
    for (const { source, target } of FLOW.edges) {
      expect((layout.x[source] ?? 0) + (layout.width[source] ?? 0)).toBeLessThan(layout.x[target] ?? 0);
    }
  });

  it("has a row per stage and begins a block where what it waits for ends", () => {
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

  it("hides long edges until their class is asked for", () => {
    const long = FLOW.edges[4];
    expect(long && isShown(long, new Set())).toBe(false);
    expect(long && isShown(long, new Set(["activation_gradient"]))).toBe(true);
  });

  it("colors dimensions by into how many parts they are split", () => {
    expect(new Set([1, 2, 4, 8, 16].map(splitColor)).size).toBe(5);
    expect(splitColor(64)).toBe(splitColor(16));
  });
});
