// The execution flow as a drawing: frames of blocks, nodes, edges with the sharding of their tensors. Only what is visible is
// drawn.

import { memo } from "react";
import type { FlowAnswer, FlowEdge, FlowNode } from "../../../api/generated.ts";
import styles from "./flow.module.css";
import { cellsAt, edgePath, fitLabel, MAX_SHARDS, placeShards } from "./geometry.ts";
import { type Box, CELL, type FlowLayout, NODE_HEIGHT } from "./layout.ts";
import { isShown, MARK_COLORS, MARK_PATHS, MARK_TITLES, splitColor, toneOf } from "./looks.ts";
import { FAR_SCALE } from "./use-viewport.ts";

interface FlowDrawingProps {
  readonly flow: FlowAnswer;
  readonly layout: FlowLayout;
  readonly viewport: Box;
  readonly scale: number;
  readonly scaleY: number;
  /** Above the drawing, in px. */
  readonly pad: number;
  readonly selected: number | null;
  readonly chosen: ReadonlySet<number>;
  /** By node, how many of its operators run in the window of the graph; null: there is none. */
  readonly running: readonly number[] | null;
  readonly shown: ReadonlySet<string>;
  /** `isAdded`: to the chosen ones. */
  onSelect(node: number, isAdded: boolean): void;
  onOpen(node: FlowNode): void;
}

export const FlowDrawing = memo(function FlowDrawing(props: FlowDrawingProps) {
  const { flow, layout, viewport, scale, scaleY, pad, selected, chosen, running, shown, onSelect, onOpen } = props;
  const isPartly = running?.some((count) => count === 0) ?? false;
  const isVisible = (left: number, right: number) => right >= viewport.x && left <= viewport.x + viewport.width;
  const { x, width } = layout;
  const leftOf = (at: number) => x[at] ?? 0;
  const rightOf = (at: number) => leftOf(at) + (width[at] ?? 0);
  const isNear = ({ source, target }: FlowEdge) => source === selected || target === selected;
  const edges = flow.edges.filter(
    (edge) => (isShown(edge, shown) || isNear(edge)) && isVisible(leftOf(edge.source), rightOf(edge.target)),
  );
  const places = placeShards(edges);
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: the group around it is named, and every node is
    <svg
      className={styles.drawing}
      style={{ marginTop: pad }}
      data-far={scale < FAR_SCALE || undefined}
      data-partly={isPartly || undefined}
      width={layout.size.width * scale}
      height={layout.size.height * scaleY}
      viewBox={`0 0 ${layout.size.width} ${layout.size.height}`}
      preserveAspectRatio="none"
    >
      {layout.blocks.map((box, block) =>
        isVisible(box.x, box.x + box.width) ? (
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
        isVisible(leftOf(at), rightOf(at)) ? (
          <Node
            // biome-ignore lint/suspicious/noArrayIndexKey: a node's place is its number
            key={at}
            node={node}
            at={at}
            layout={layout}
            isSelected={at === selected}
            isChosen={chosen.has(at)}
            isRunning={running === null ? null : (running[at] ?? 0) > 0}
            onSelect={onSelect}
            onOpen={onOpen}
          />
        ) : null,
      )}
    </svg>
  );
});

interface EdgeProps {
  readonly edge: FlowEdge;
  readonly layout: FlowLayout;
  readonly isNear: boolean;
  readonly place: number;
}

function Edge({ edge, layout, isNear, place }: EdgeProps) {
  const { shard } = edge;
  const [left, top] = cellsAt(edge, layout, place);
  return (
    <g className={styles.edge} data-class={edge.edge_class} data-near={isNear || undefined}>
      <path d={edgePath(edge, layout)} />
      {shard !== null && place < MAX_SHARDS && (
        <g transform={`translate(${left} ${top})`}>
          <title>{`split ${shard.join(" × ")}`}</title>
          {shard.map((parts, dimension) => (
            <rect
              // biome-ignore lint/suspicious/noArrayIndexKey: dimensions are identified by their index
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
  readonly isChosen: boolean;
  /** Null: there is no window. */
  readonly isRunning: boolean | null;
  onSelect(node: number, isAdded: boolean): void;
  onOpen(node: FlowNode): void;
}

function Node({
  node,
  at,
  layout: { x, y, width: widths },
  isSelected,
  isChosen,
  isRunning,
  onSelect,
  onOpen,
}: NodeProps) {
  const width = widths[at] ?? 0;
  const { label, suffix } = fitLabel(node, width);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys are the drawing's, which names what is selected
    <g
      id={`flow-node-${at}`}
      className={styles.node}
      data-kind={node.kind}
      data-selected={isSelected || undefined}
      data-chosen={isChosen || undefined}
      data-running={isRunning ?? undefined}
      data-found={node.matches > 0 || undefined}
      transform={`translate(${x[at] ?? 0} ${y[at] ?? 0})`}
      onClick={(event) => onSelect(at, event.shiftKey || event.ctrlKey || event.metaKey)}
      onDoubleClick={() => onOpen(node)}
    >
      <title>{describeNode(node)}</title>
      {node.count > 1 && (
        <>
          <rect x={6} y={-6} width={width} height={NODE_HEIGHT} rx={5} />
          <rect x={3} y={-3} width={width} height={NODE_HEIGHT} rx={5} />
        </>
      )}
      <rect width={width} height={NODE_HEIGHT} rx={5} />
      <rect className={styles.tone} x={1} y={4} width={3} height={NODE_HEIGHT - 8} rx={1.5} fill={toneOf(node)} />
      <rect className={styles.far} width={width} height={NODE_HEIGHT} rx={5} fill={toneOf(node)} />
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

export function describeNode({ label, namespace, operators, count, kind }: FlowNode): string {
  const stacked = count > 1 ? `, ${count} identical ones stacked` : "";
  return kind === "namespace"
    ? `${namespace}: ${operators} operators${stacked}`
    : `${label} in ${namespace || "the top level"}${stacked}`;
}
