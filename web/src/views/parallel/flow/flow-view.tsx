// The execution flow of a trace: operators from left to right as they run, a row per pipeline stage, marks of the parallel
// strategy. Namespaces expand and collapse; long edges are shown by class; a node links to its time in the graph.

import { type KeyboardEvent, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import type { FlowActivity, FlowAnswer, FlowNode } from "../../../api/generated.ts";
import { useInk } from "../../../charts/canvas.tsx";
import { useFlow, useFlowActivity } from "../../../data/traces.ts";
import type { NsWindow, ParallelPage } from "../../../state/parallel.ts";
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
  /** The window of the graph next to it, whose operators are lit; null: the flow is alone. */
  readonly window: NsWindow | null;
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

function Flow({ flow, trace, title, page, window, saves, onChange, onShow }: FlowProps) {
  const layout = useMemo(() => layOut(flow), [flow]);
  const [shown, setShown] = useState<ReadonlySet<string>>(new Set());
  const activity = useActivity(trace, flow, page.span, window);
  const { selected, chosen, choose } = useChosen(flow, page, activity, onChange);
  const viewport = useViewport(layout, window === null ? flow.at : null);
  useReveal(viewport, selected);
  const running = activity?.running.length === flow.nodes.length ? activity.running : null;
  useSaves(saves, { flow, layout, title: `${title} execution flow`, selected, shown });
  const select = (at: number | null) => choose(at, false);
  const show = (at: number) => {
    select(at);
    viewport.reveal(at);
  };
  const openNode = ({ opens }: FlowNode) => opens !== null && onChange({ flow: [...flow.opened, opens], nodes: [] });
  const closeNamespace = (namespace: number | null) =>
    onChange({
      flow: flow.opened.filter((opened) => opened !== String(namespace) && opened !== `*${namespace ?? -1}`),
      nodes: [],
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
  const drawn = { flow, layout, viewport, selected, chosen, running, shown };
  const isLinked = window !== null;
  return (
    <div className={styles.flow} data-linked={isLinked || undefined}>
      <FlowBar
        flow={flow}
        shown={shown}
        onShown={setShown}
        matchCount={page.text ? matches.length : null}
        onNext={() => show(matches.find((at) => at > (selected ?? -1)) ?? matches[0] ?? 0)}
        running={isLinked ? running : null}
        isByModule={activity?.is_by_module ?? false}
        isLinked={isLinked}
        onReset={() => onChange({ flow: null, nodes: [] })}
        onScale={viewport.rescale}
        onFit={viewport.isFitted ? null : viewport.fit}
        form={isTable ? "flow_table" : "flow"}
        onForm={(drawing) => onChange({ drawing })}
      />
      <div className={styles.place} data-table={isTable || undefined}>
        {isTable && <FlowTable trace={trace} flow={flow} text={page.text} selected={selected} onSelect={select} />}
        <FlowPane {...drawn} isHidden={isTable} onKeyDown={onKeyDown} onSelect={choose} onOpen={openNode} />
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
      {!isTable && !isLinked && (
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
  readonly chosen: ReadonlySet<number>;
  readonly running: readonly number[] | null;
  readonly shown: ReadonlySet<string>;
  readonly isHidden: boolean;
  onKeyDown(event: KeyboardEvent): void;
  onSelect(node: number, isAdded: boolean): void;
  onOpen(node: FlowNode): void;
}

const MARGIN = 40;

function FlowPane(props: FlowPaneProps) {
  const { flow, layout, viewport, selected, isHidden, onKeyDown } = props;
  const { box, scale, scaleY } = viewport;
  return (
    <>
      {!isHidden && <FlowLabels flow={flow} layout={layout} scale={scaleY} top={viewport.top} pad={viewport.pad} />}
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
          scaleY={scaleY}
          pad={viewport.pad}
          selected={selected}
          chosen={props.chosen}
          running={props.running}
          shown={props.shown}
          onSelect={props.onSelect}
          onOpen={props.onOpen}
        />
      </section>
    </>
  );
}

/** What runs in the window of the graph next to the flow, and the node of the span that is selected there. */
function useActivity(
  trace: string,
  flow: FlowAnswer,
  span: number | null,
  window: NsWindow | null,
): FlowActivity | undefined {
  const query = useMemo(
    () =>
      window && {
        open: flow.opened,
        span,
        fromNs: Math.floor(window.fromNs),
        toNs: Math.ceil(window.toNs),
      },
    [flow.opened, span, window],
  );
  return useFlowActivity(trace, query).value;
}

interface Chosen {
  /** The node whose details are shown: the one chosen last, or that of the selected span. */
  readonly selected: number | null;
  readonly chosen: ReadonlySet<number>;
  /** `isAdded`: to the chosen ones, or away from them. */
  choose(node: number | null, isAdded: boolean): void;
}

/** The chosen nodes are in the link, with what is open, by which they are numbered; and the longest span of the last of them. */
function useChosen(
  flow: FlowAnswer,
  page: ParallelPage,
  activity: FlowActivity | undefined,
  onChange: FlowViewProps["onChange"],
): Chosen {
  const { nodes } = page;
  const chosen = useMemo(() => new Set(nodes.filter((node) => node < flow.nodes.length)), [nodes, flow]);
  const last = [...chosen].at(-1);
  const ofSpan = page.span === null ? null : activity === undefined ? flow.at : activity.at;
  return {
    selected: last ?? ofSpan,
    chosen,
    choose(node, isAdded) {
      const others = isAdded ? [...chosen].filter((other) => other !== node) : [];
      const next = node === null ? [] : isAdded && chosen.has(node) ? others : [...others, node];
      const latest = next.at(-1);
      const span = latest === undefined ? null : (flow.nodes[latest]?.span ?? null);
      onChange({ nodes: next, flow: flow.opened, verdict: null, ...(flow.is_recorded ? {} : { span }) });
    },
  };
}

/** Scrolls to the selected node when another one is. */
function useReveal(viewport: Viewport, selected: number | null): void {
  const reveal = useRef(viewport.reveal);
  reveal.current = viewport.reveal;
  useEffect(() => {
    if (selected !== null) reveal.current(selected);
  }, [selected]);
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
