// The execution flow of a trace: operators from left to right as they run, a row per pipeline stage, the parallel strategy on
// it. Namespaces open and close; long edges show by class; a node tells what it is and leads to its time in the graph.

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
import { nodeBeside } from "./geometry.ts";
import { type FlowLayout, layOut } from "./layout.ts";
import { Minimap } from "./minimap.tsx";
import { type Sight, useSight } from "./use-sight.ts";

export type SaveFlow = (kind: "png" | "svg") => void;

interface FlowViewProps {
  readonly trace: string;
  readonly title: string;
  readonly page: ParallelPage;
  /** Told how the flow is saved while it is shown. */
  readonly saves: RefObject<SaveFlow | null>;
  onChange(changes: Partial<ParallelPage>): void;
  /** Its time in the Marey graph. */
  onShow(node: FlowNode, stage: number | null): void;
}

export function FlowView(props: FlowViewProps) {
  const { trace, page } = props;
  // The span one comes with; what is selected later is in the flow already.
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
  const sight = useSight(layout, flow.at);
  useSaves(saves, { flow, layout, title: `${title} execution flow`, selected, shown });
  const show = (at: number) => {
    select(at);
    sight.reveal(at);
  };
  const openNode = ({ opens }: FlowNode) => opens !== null && onChange({ flow: [...flow.opened, opens] });
  const closeNamespace = (namespace: number | null) =>
    onChange({ flow: flow.opened.filter((each) => each !== String(namespace) && each !== `*${namespace ?? -1}`) });
  const found = flow.nodes.flatMap(({ matches }, at) => (matches > 0 ? [at] : []));
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
  const drawn = { flow, layout, sight, selected, shown };
  return (
    <div className={styles.flow}>
      <FlowBar
        flow={flow}
        shown={shown}
        onShown={setShown}
        found={page.text ? found.length : null}
        onNext={() => show(found.find((at) => at > (selected ?? -1)) ?? found[0] ?? 0)}
        onFirst={() => onChange({ flow: null })}
        onScale={sight.rescale}
        form={isTable ? "flow_table" : "flow"}
        onForm={(drawing) => onChange({ drawing })}
      />
      <div className={styles.place} data-table={isTable || undefined}>
        {isTable && <FlowTable trace={trace} flow={flow} text={page.text} selected={selected} onSelect={select} />}
        <Drawn {...drawn} isHidden={isTable} onKeyDown={onKeyDown} onSelect={select} onOpen={openNode} />
        {node && (
          <FlowDetails
            flow={flow}
            node={node}
            at={selected ?? 0}
            onOpen={openNode}
            onCloseNamespace={closeNamespace}
            onSelect={show}
            onShow={(one) => onShow(one, flow.blocks[one.block]?.stage ?? null)}
            onClose={() => select(null)}
          />
        )}
      </div>
      {!isTable && (
        <footer className={styles.foot}>
          <FlowLegend flow={flow} />
          <Minimap layout={layout} sight={sight.box} onMove={sight.moveTo} />
        </footer>
      )}
    </div>
  );
}

interface DrawnProps {
  readonly flow: FlowAnswer;
  readonly layout: FlowLayout;
  readonly sight: Sight;
  readonly selected: number | null;
  readonly shown: ReadonlySet<string>;
  readonly isHidden: boolean;
  onKeyDown(event: KeyboardEvent): void;
  onSelect(node: number): void;
  onOpen(node: FlowNode): void;
}

const AIR = 40;

function Drawn({ flow, layout, sight, selected, shown, isHidden, onKeyDown, onSelect, onOpen }: DrawnProps) {
  const { box, scale } = sight;
  return (
    <>
      {!isHidden && <FlowLabels flow={flow} layout={layout} scale={scale} top={sight.top} />}
      <section
        ref={sight.scroller}
        className={styles.scroll}
        hidden={isHidden}
        role="application"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys move from node to node
        tabIndex={0}
        aria-label="Execution flow: arrow keys go from node to node, Enter opens, Backspace closes the namespace around"
        aria-activedescendant={selected === null ? undefined : `flow-node-${selected}`}
        onKeyDown={onKeyDown}
        onScroll={sight.onScroll}
      >
        <FlowDrawing
          flow={flow}
          layout={layout}
          sight={{ ...box, x: box.x - AIR, width: box.width + 2 * AIR }}
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

/** What is selected: at first the node of the span one comes with. Another one's span is told, so that a link has it. */
function useSelected(
  flow: FlowAnswer,
  span: number | null,
  tell: (span: number | null) => void,
): readonly [number | null, (node: number | null) => void] {
  const [chosen, setChosen] = useState<{ readonly flow: FlowAnswer; readonly node: number | null } | null>(null);
  const selected = chosen === null ? flow.at : chosen.flow === flow ? chosen.node : null;
  const select = (node: number | null) => {
    setChosen({ flow, node });
    const own = node === null ? null : (flow.nodes[node]?.span ?? null);
    if (!flow.is_recorded && own !== span) tell(own);
  };
  return [selected, select];
}

/** Tells those outside how the flow is saved while it is shown. */
function useSaves(saves: RefObject<SaveFlow | null>, what: Omit<FlowFile, "ink">): void {
  const ink = useInk();
  const file = useRef<FlowFile>({ ...what, ink });
  file.current = { ...what, ink };
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
  if (key === "ArrowDown") return nodeBeside(layout, selected, 1);
  return key === "ArrowUp" ? nodeBeside(layout, selected, -1) : null;
}
