// The execution flow of a trace: operators from left to right as they run, a row per pipeline stage, marks of the parallel
// strategy. Namespaces expand and collapse; long edges are shown by class; a node links to its time in the graph.

import { type KeyboardEvent, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import type { FlowAnswer, FlowNode } from "../../../api/generated.ts";
import { useInk } from "../../../charts/canvas.tsx";
import { useFlow } from "../../../data/traces.ts";
import type { ParallelPage } from "../../../state/parallel.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { type FlowFile, saveFlowPng, saveFlowSvg } from "./export.ts";
import styles from "./flow.module.css";
import { FlowBar } from "./flow-bar.tsx";
import { FlowDetails } from "./flow-details.tsx";
import { FlowDrawing } from "./flow-drawing.tsx";
import { FlowLabels } from "./flow-labels.tsx";
import { FlowLegend } from "./flow-legend.tsx";
import { FlowTable } from "./flow-table.tsx";
import { findNodeInRow } from "./geometry.ts";
import { type FlowLayout, layOut } from "./layout.ts";
import { Minimap } from "./minimap.tsx";
import { useViewport, type Viewport } from "./use-viewport.ts";

export type SaveFlow = (kind: "png" | "svg") => void;

interface FlowViewProps {
  readonly trace: string;
  readonly title: string;
  readonly page: ParallelPage;
  /** Set to a function that saves the flow while it is shown. */
  readonly saves: RefObject<SaveFlow | null>;
  onChange(changes: Partial<ParallelPage>): void;
  /** Shows its time in the Marey graph. */
  onShow(node: FlowNode, stage: number | null): void;
}

export function FlowView(props: FlowViewProps) {
  const { trace, page } = props;
  // The span of the link; spans that are selected later are in the flow already.
  const [span] = useState(page.span);
  const answer = useFlow(trace, { open: page.flow, text: page.text, span });
  return (
    <Frame source={answer} what="the execution flow">
      {(flow) => <Flow {...props} flow={flow} />}
    </Frame>
  );
}

interface FlowProps extends FlowViewProps {
  readonly flow: FlowAnswer;
}

function Flow({ flow, trace, title, page, saves, onChange, onShow }: FlowProps) {
  const layout = useMemo(() => layOut(flow), [flow]);
  const [shown, setShown] = useState<ReadonlySet<string>>(new Set());
  const [selected, select] = useSelected(flow, page.span, (span) => onChange({ span }));
  const viewport = useViewport(layout, flow.at);
  useSaves(saves, { flow, layout, title: `${title} execution flow`, selected, shown });
  const show = (at: number) => {
    select(at);
    viewport.reveal(at);
  };
  const openNode = ({ opens }: FlowNode) => opens !== null && onChange({ flow: [...flow.opened, opens] });
  const closeNamespace = (namespace: number | null) =>
    onChange({
      flow: flow.opened.filter((opened) => opened !== String(namespace) && opened !== `*${namespace ?? -1}`),
    });
  const matches = flow.nodes.flatMap(({ matches: count }, at) => (count > 0 ? [at] : []));
  const node = selected === null ? undefined : flow.nodes[selected];
  const onKeyDown = (event: KeyboardEvent) => {
    const next = findNext(event.key, selected, flow, layout);
    if (next !== null) show(next);
    else if (event.key === "Enter" && node) openNode(node);
    else if (event.key === "Backspace" && node) closeNamespace(node.parent);
    else if (event.key === "Escape") select(null);
    else return;
    event.preventDefault();
  };
  const isTable = page.drawing === "flow_table";
  const drawn = { flow, layout, viewport, selected, shown };
  return (
    <div className={styles.flow}>
      <FlowBar
        flow={flow}
        shown={shown}
        onShown={setShown}
        matchCount={page.text ? matches.length : null}
        onNext={() => show(matches.find((at) => at > (selected ?? -1)) ?? matches[0] ?? 0)}
        onReset={() => onChange({ flow: null })}
        onScale={viewport.rescale}
        form={isTable ? "flow_table" : "flow"}
        onForm={(drawing) => onChange({ drawing })}
      />
      <div className={styles.place} data-table={isTable || undefined}>
        {isTable && <FlowTable trace={trace} flow={flow} text={page.text} selected={selected} onSelect={select} />}
        <FlowPane {...drawn} isHidden={isTable} onKeyDown={onKeyDown} onSelect={select} onOpen={openNode} />
        {node && (
          <FlowDetails
            flow={flow}
            node={node}
            at={selected ?? 0}
            onOpen={openNode}
            onCloseNamespace={closeNamespace}
            onSelect={show}
            onShow={(shownNode) => onShow(shownNode, flow.blocks[shownNode.block]?.stage ?? null)}
            onClose={() => select(null)}
          />
        )}
      </div>
      {!isTable && (
        <footer className={styles.foot}>
          <FlowLegend flow={flow} />
          <Minimap layout={layout} viewport={viewport.box} onMove={viewport.moveTo} />
        </footer>
      )}
    </div>
  );
}

interface FlowPaneProps {
  readonly flow: FlowAnswer;
  readonly layout: FlowLayout;
  readonly viewport: Viewport;
  readonly selected: number | null;
  readonly shown: ReadonlySet<string>;
  readonly isHidden: boolean;
  onKeyDown(event: KeyboardEvent): void;
  onSelect(node: number): void;
  onOpen(node: FlowNode): void;
}

const MARGIN = 40;

function FlowPane({ flow, layout, viewport, selected, shown, isHidden, onKeyDown, onSelect, onOpen }: FlowPaneProps) {
  const { box, scale } = viewport;
  return (
    <>
      {!isHidden && <FlowLabels flow={flow} layout={layout} scale={scale} top={viewport.top} />}
      <section
        ref={viewport.scroller}
        className={styles.scroll}
        hidden={isHidden}
        role="application"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys move from node to node
        tabIndex={0}
        aria-label="Execution flow: arrow keys move between nodes, Enter expands a node, Backspace collapses its namespace"
        aria-activedescendant={selected === null ? undefined : `flow-node-${selected}`}
        onKeyDown={onKeyDown}
        onScroll={viewport.onScroll}
      >
        <FlowDrawing
          flow={flow}
          layout={layout}
          viewport={{ ...box, x: box.x - MARGIN, width: box.width + 2 * MARGIN }}
          scale={scale}
          selected={selected}
          shown={shown}
          onSelect={onSelect}
          onOpen={onOpen}
        />
      </section>
    </>
  );
}

/** The selected node: at first that of the link's span. Passes the span of another node on, so that the link has it. */
function useSelected(
  flow: FlowAnswer,
  span: number | null,
  onSpan: (span: number | null) => void,
): readonly [number | null, (node: number | null) => void] {
  const [chosen, setChosen] = useState<{ readonly flow: FlowAnswer; readonly node: number | null } | null>(null);
  const selected = chosen === null ? flow.at : chosen.flow === flow ? chosen.node : null;
  const select = (node: number | null) => {
    setChosen({ flow, node });
    const nodeSpan = node === null ? null : (flow.nodes[node]?.span ?? null);
    if (!flow.is_recorded && nodeSpan !== span) onSpan(nodeSpan);
  };
  return [selected, select];
}

/** Sets the function that saves the flow while it is shown. */
function useSaves(saves: RefObject<SaveFlow | null>, content: Omit<FlowFile, "ink">): void {
  const ink = useInk();
  const file = useRef<FlowFile>({ ...content, ink });
  file.current = { ...content, ink };
  useEffect(() => {
    saves.current = (kind) => (kind === "svg" ? saveFlowSvg(file.current) : void saveFlowPng(file.current));
    return () => {
      saves.current = null;
    };
  }, [saves]);
}

/** Left and right along the order of execution, up and down to the row above or below; null: no such key or node. */
function findNext(key: string, selected: number | null, { nodes }: FlowAnswer, layout: FlowLayout): number | null {
  const along = { ArrowRight: 1, ArrowLeft: -1 }[key];
  if (along !== undefined) return Math.max(0, Math.min(nodes.length - 1, (selected ?? -along) + along));
  if (selected === null) return null;
  if (key === "ArrowDown") return findNodeInRow(layout, selected, 1);
  return key === "ArrowUp" ? findNodeInRow(layout, selected, -1) : null;
}
