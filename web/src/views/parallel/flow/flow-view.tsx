// The execution flow of a trace: operators from left to right as they run, a row per pipeline stage, the parallel strategy on
// it. Namespaces open and close; long edges show by class; a node tells what it is and leads to its time in the graph.

import { type KeyboardEvent, type RefObject, type UIEvent, useEffect, useMemo, useRef, useState } from "react";
import type { FlowAnswer, FlowNode } from "../../../api/generated.ts";
import { useInk, useSize } from "../../../charts/canvas.tsx";
import { useFlow } from "../../../data/traces.ts";
import type { ParallelPage } from "../../../state/parallel.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { saveFlowPng, saveFlowSvg } from "./export.ts";
import styles from "./flow.module.css";
import { FlowBar } from "./flow-bar.tsx";
import { FlowDetails } from "./flow-details.tsx";
import { FlowDrawing } from "./flow-drawing.tsx";
import { FlowLabels } from "./flow-labels.tsx";
import { FlowLegend } from "./flow-legend.tsx";
import { FlowTable } from "./flow-table.tsx";
import { nodeBeside } from "./geometry.ts";
import { layOut } from "./layout.ts";
import { Minimap } from "./minimap.tsx";

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

const SCALES = [0.25, 0.35, 0.5, 0.7, 1, 1.2, 1.5] as const;
const USUAL_SCALE = 4;
/** Where the rows leave room, the drawing is larger. */
const LARGER_BELOW = 0.66;
const AIR = 40;

function Flow({ flow, trace, title, page, saves, onChange, onShow }: FlowViewProps & { readonly flow: FlowAnswer }) {
  const layout = useMemo(() => layOut(flow), [flow]);
  const ink = useInk();
  const [chosen, setChosen] = useState<{ readonly flow: FlowAnswer; readonly node: number | null } | null>(null);
  const selected = chosen === null ? flow.at : chosen.flow === flow ? chosen.node : null;
  const [shown, setShown] = useState<ReadonlySet<string>>(new Set());
  const scroll = useRef<HTMLElement>(null);
  const size = useSize(scroll);
  const [chosenStep, setStep] = useState<number | null>(null);
  const step = chosenStep ?? (layout.size.height < LARGER_BELOW * size.height ? USUAL_SCALE + 1 : USUAL_SCALE);
  const scale = SCALES[step] ?? 1;
  const [corner, setCorner] = useState({ left: 0, top: 0 });
  const sight = {
    x: corner.left / scale,
    y: corner.top / scale,
    width: size.width / scale,
    height: size.height / scale,
  };
  const select = (node: number | null) => {
    setChosen({ flow, node });
    const span = node === null ? null : (flow.nodes[node]?.span ?? null);
    if (!flow.is_recorded && span !== page.span) onChange({ span });
  };
  const moveTo = (x: number, y?: number) =>
    scroll.current?.scrollTo({
      left: x * scale - size.width / 2,
      ...(y === undefined ? {} : { top: y * scale - size.height / 2 }),
    });
  const show = (at: number) => {
    select(at);
    const [left, top] = [layout.x[at] ?? 0, layout.y[at] ?? 0];
    const isSeen =
      left >= sight.x &&
      left + (layout.width[at] ?? 0) <= sight.x + sight.width &&
      top >= sight.y &&
      top <= sight.y + sight.height;
    if (!isSeen) moveTo(left, top);
  };
  useArrival(flow, size.width, (at) => moveTo(layout.x[at] ?? 0, layout.y[at] ?? 0));
  useEffect(() => {
    const file = { flow, layout, title: `${title} execution flow`, selected, shown, ink };
    saves.current = (kind) => (kind === "svg" ? saveFlowSvg(file) : void saveFlowPng(file));
    return () => {
      saves.current = null;
    };
  }, [flow, layout, title, selected, shown, ink, saves]);
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
  return (
    <div className={styles.flow}>
      <FlowBar
        flow={flow}
        shown={shown}
        onShown={setShown}
        found={page.text ? found.length : null}
        onNext={() => show(found.find((at) => at > (selected ?? -1)) ?? found[0] ?? 0)}
        onFirst={() => onChange({ flow: null })}
        onScale={(by) => setStep(Math.max(0, Math.min(SCALES.length - 1, step + by)))}
        form={isTable ? "flow_table" : "flow"}
        onForm={(drawing) => onChange({ drawing })}
      />
      <div className={styles.place} data-table={isTable || undefined}>
        {isTable ? (
          <FlowTable trace={trace} flow={flow} text={page.text} selected={selected} onSelect={select} />
        ) : (
          <>
            <FlowLabels flow={flow} layout={layout} scale={scale} top={corner.top} />
            <section
              ref={scroll}
              className={styles.scroll}
              role="application"
              // biome-ignore lint/a11y/noNoninteractiveTabindex: keys move from node to node
              tabIndex={0}
              aria-label="Execution flow: arrow keys go from node to node, Enter opens, Backspace closes the namespace around"
              aria-activedescendant={selected === null ? undefined : `flow-node-${selected}`}
              onKeyDown={onKeyDown}
              onScroll={({ currentTarget }: UIEvent) =>
                setCorner({ left: currentTarget.scrollLeft, top: currentTarget.scrollTop })
              }
            >
              <FlowDrawing
                flow={flow}
                layout={layout}
                sight={{ ...sight, x: sight.x - AIR, width: sight.width + 2 * AIR }}
                scale={scale}
                selected={selected}
                shown={shown}
                onSelect={select}
                onOpen={openNode}
              />
            </section>
          </>
        )}
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
          <Minimap layout={layout} sight={sight} onMove={moveTo} />
        </footer>
      )}
    </div>
  );
}

/** Left and right along the order of execution, up and down to the row above or below; null: no such key or node. */
function findNext(
  key: string,
  selected: number | null,
  { nodes }: FlowAnswer,
  layout: ReturnType<typeof layOut>,
): number | null {
  const along = { ArrowRight: 1, ArrowLeft: -1 }[key];
  if (along !== undefined) return Math.max(0, Math.min(nodes.length - 1, (selected ?? -along) + along));
  if (selected === null) return null;
  if (key === "ArrowDown") return nodeBeside(layout, selected, 1);
  return key === "ArrowUp" ? nodeBeside(layout, selected, -1) : null;
}

/** Brings the node one comes for into sight, once. */
function useArrival({ at }: FlowAnswer, widthPx: number, move: (at: number) => void): void {
  const isDone = useRef(false);
  const go = useRef(move);
  go.current = move;
  useEffect(() => {
    if (isDone.current || at === null || widthPx === 0) return;
    isDone.current = true;
    go.current(at);
  }, [at, widthPx]);
}
