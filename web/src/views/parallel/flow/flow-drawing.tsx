// The execution flow as a drawing: frames of blocks, nodes, edges with the sharding of their tensors. Only what is in sight is
// drawn.

import { memo } from "react";
import type { FlowAnswer, FlowEdge, FlowNode } from "../../../api/generated.ts";
import styles from "./flow.module.css";
import { type Box, CELL, type FlowLayout, NODE_HEIGHT } from "./layout.ts";
import { isShown, MARK_COLORS, MARK_PATHS, MARK_TITLES, splitColor, toneOf } from "./looks.ts";

interface FlowDrawingProps {
  readonly flow: FlowAnswer;
  readonly layout: FlowLayout;
  readonly sight: Box;
  readonly scale: number;
  readonly selected: number | null;
  readonly shown: ReadonlySet<string>;
  onSelect(node: number): void;
  onOpen(node: FlowNode): void;
}

const LETTER = 6.4;

export const FlowDrawing = memo(function FlowDrawing(props: FlowDrawingProps) {
  const { flow, layout, sight, scale, selected, shown, onSelect, onOpen } = props;
  const inSight = (left: number, right: number) => right >= sight.x && left <= sight.x + sight.width;
  const { x, width } = layout;
  const leftOf = (at: number) => x[at] ?? 0;
  const rightOf = (at: number) => leftOf(at) + (width[at] ?? 0);
  const isNear = ({ source, target }: FlowEdge) => source === selected || target === selected;
  const edges = flow.edges.filter(
    (edge) => (isShown(edge, shown) || isNear(edge)) && inSight(leftOf(edge.source), rightOf(edge.target)),
  );
  const places = placeShards(edges);
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: the group around it is named, and every node is
    <svg
      className={styles.drawing}
      width={layout.size.width * scale}
      height={layout.size.height * scale}
      viewBox={`0 0 ${layout.size.width} ${layout.size.height}`}
    >
      {layout.blocks.map((box, block) =>
        inSight(box.x, box.x + box.width) ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: a block's place is its number
          <rect key={block} className={styles.block} x={box.x} y={box.y} width={box.width} height={box.height} rx={8} />
        ) : null,
      )}
      {edges.map((edge) => (
        <Edge
          key={`${edge.source}-${edge.target}-${edge.edge_class}`}
          edge={edge}
          layout={layout}
          isNear={isNear(edge)}
          place={places.get(edge) ?? 0}
        />
      ))}
      {flow.nodes.map((node, at) =>
        inSight(leftOf(at), rightOf(at)) ? (
          <Node
            // biome-ignore lint/suspicious/noArrayIndexKey: a node's place is its number
            key={at}
            node={node}
            at={at}
            layout={layout}
            isSelected={at === selected}
            onSelect={onSelect}
            onOpen={onOpen}
          />
        ) : null,
      )}
    </svg>
  );
});

/** Tensors that come into one node stand below one another. */
function placeShards(edges: readonly FlowEdge[]): ReadonlyMap<FlowEdge, number> {
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

interface EdgeProps {
  readonly edge: FlowEdge;
  readonly layout: FlowLayout;
  readonly isNear: boolean;
  readonly place: number;
}

function Edge({ edge, layout: { x, y, width }, isNear, place }: EdgeProps) {
  const fromX = (x[edge.source] ?? 0) + (width[edge.source] ?? 0);
  const fromY = (y[edge.source] ?? 0) + NODE_HEIGHT / 2;
  const toX = x[edge.target] ?? 0;
  const toY = (y[edge.target] ?? 0) + NODE_HEIGHT / 2;
  const reach = Math.max(14, Math.min(60, (toX - fromX) / 2));
  // What passes over other nodes goes above them.
  const lift = edge.is_long && Math.abs(fromY - toY) < 1 ? NODE_HEIGHT + 10 : 0;
  const way = lift
    ? `M${fromX} ${fromY}C${fromX + 20} ${fromY - lift} ${toX - 20} ${toY - lift} ${toX} ${toY}`
    : `M${fromX} ${fromY}C${fromX + reach} ${fromY} ${toX - reach} ${toY} ${toX} ${toY}`;
  const { shard } = edge;
  const left = toX - 5 - (shard?.length ?? 0) * (CELL + 1);
  return (
    <g className={styles.edge} data-class={edge.edge_class} data-near={isNear || undefined}>
      <path d={way} />
      {shard !== null && place < 4 && (
        <g transform={`translate(${left} ${toY - CELL / 2 + (place === 0 ? 0 : place * (CELL + 2))})`}>
          <title>{`split ${shard.join(" × ")}`}</title>
          {shard.map((parts, dimension) => (
            <rect
              // biome-ignore lint/suspicious/noArrayIndexKey: dimensions are told apart by their place
              key={dimension}
              className={styles.cell}
              x={dimension * (CELL + 1)}
              width={CELL}
              height={CELL}
              fill={splitColor(parts)}
            />
          ))}
        </g>
      )}
    </g>
  );
}

interface NodeProps {
  readonly node: FlowNode;
  readonly at: number;
  readonly layout: FlowLayout;
  readonly isSelected: boolean;
  onSelect(node: number): void;
  onOpen(node: FlowNode): void;
}

function Node({ node, at, layout: { x, y, width: widths }, isSelected, onSelect, onOpen }: NodeProps) {
  const width = widths[at] ?? 0;
  const suffix = node.count > 1 ? ` ×${node.count}` : "";
  const letters = Math.floor((width - 16) / LETTER) - suffix.length;
  const label = node.label.length > letters ? `${node.label.slice(0, Math.max(3, letters - 1))}…` : node.label;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys are the drawing's, which names what is selected
    <g
      id={`flow-node-${at}`}
      className={styles.node}
      data-kind={node.kind}
      data-selected={isSelected || undefined}
      data-found={node.matches > 0 || undefined}
      transform={`translate(${x[at] ?? 0} ${y[at] ?? 0})`}
      onClick={() => onSelect(at)}
      onDoubleClick={() => onOpen(node)}
    >
      <title>{sayNode(node)}</title>
      {node.count > 1 && (
        <>
          <rect x={6} y={-6} width={width} height={NODE_HEIGHT} rx={5} />
          <rect x={3} y={-3} width={width} height={NODE_HEIGHT} rx={5} />
        </>
      )}
      <rect width={width} height={NODE_HEIGHT} rx={5} />
      <rect className={styles.tone} x={1} y={4} width={3} height={NODE_HEIGHT - 8} rx={1.5} fill={toneOf(node)} />
      <text x={9} y={NODE_HEIGHT / 2 + 4}>
        {label}
        <tspan className={styles.times}>{suffix}</tspan>
      </text>
      {node.marks.map(({ mark, count }, place) => (
        <g key={mark} transform={`translate(${width - 8 - place * 13} ${NODE_HEIGHT})`}>
          <title>{`${MARK_TITLES[mark]}${count > 1 ? ` ×${count}` : ""}`}</title>
          <path className={styles.mark} d={MARK_PATHS[mark]} fill={MARK_COLORS[mark]} />
        </g>
      ))}
    </g>
  );
}

export function sayNode({ label, namespace, operators, count, kind }: FlowNode): string {
  const many = count > 1 ? `, ${count} alike stacked` : "";
  return kind === "namespace"
    ? `${namespace}: ${operators} operators${many}`
    : `${label} in ${namespace || "the top"}${many}`;
}
