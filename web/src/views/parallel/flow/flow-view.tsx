// The execution flow of a trace: operators from left to right as they run, a row per pipeline stage, the parallel strategy on
// it. Namespaces open and close; long edges show by class; a node tells what it is and leads to its time in the graph.

import { type KeyboardEvent, type UIEvent, useMemo, useRef, useState } from "react";
import type { FlowAnswer, FlowNode } from "../../../api/generated.ts";
import { formatPlural } from "../../../base/format.ts";
import { useSize } from "../../../charts/canvas.tsx";
import { useFlow } from "../../../data/traces.ts";
import { Button } from "../../../widgets/button.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import styles from "./flow.module.css";
import { FlowDetails } from "./flow-details.tsx";
import { FlowDrawing } from "./flow-drawing.tsx";
import { FlowLegend } from "./flow-legend.tsx";
import { type FlowLayout, layOut } from "./layout.ts";
import { CLASS_TITLES, LONG_CLASSES } from "./looks.ts";
import { Minimap } from "./minimap.tsx";

interface FlowViewProps {
  readonly trace: string;
  /** Null: as a first picture. */
  readonly open: readonly string[] | null;
  readonly text: string;
  onOpen(open: readonly string[] | null): void;
  /** Its time in the Marey graph. */
  onShow(node: FlowNode): void;
}

export function FlowView({ trace, open, text, onOpen, onShow }: FlowViewProps) {
  const answer = useFlow(trace, open, text);
  return (
    <Frame source={answer} what="the execution flow">
      {(flow) => <Flow flow={flow} text={text} onOpen={onOpen} onShow={onShow} />}
    </Frame>
  );
}

const SCALES = [0.25, 0.35, 0.5, 0.7, 1, 1.4] as const;
const USUAL_SCALE = 4;
const AIR = 40;

interface FlowProps {
  readonly flow: FlowAnswer;
  readonly text: string;
  onOpen(open: readonly string[] | null): void;
  onShow(node: FlowNode): void;
}

function Flow({ flow, text, onOpen, onShow }: FlowProps) {
  const layout = useMemo(() => layOut(flow), [flow]);
  const [chosen, setChosen] = useState<{ readonly flow: FlowAnswer; readonly node: number } | null>(null);
  const selected = chosen?.flow === flow ? chosen.node : null;
  const [shown, setShown] = useState<ReadonlySet<string>>(new Set());
  const [step, setStep] = useState(USUAL_SCALE);
  const scale = SCALES[step] ?? 1;
  const scroll = useRef<HTMLElement>(null);
  const size = useSize(scroll);
  const [corner, setCorner] = useState({ left: 0, top: 0 });
  const sight = {
    x: corner.left / scale,
    y: corner.top / scale,
    width: size.width / scale,
    height: size.height / scale,
  };
  const select = (node: number | null) => setChosen(node === null ? null : { flow, node });
  const moveTo = (x: number) => scroll.current?.scrollTo({ left: x * scale - size.width / 2 });
  const show = (at: number) => {
    select(at);
    const left = layout.x[at] ?? 0;
    if (left < sight.x || left + (layout.width[at] ?? 0) > sight.x + sight.width) moveTo(left);
  };
  const openNode = ({ opens }: FlowNode) => opens !== null && onOpen([...flow.opened, opens]);
  const closeNamespace = (namespace: number | null) =>
    onOpen(flow.opened.filter((each) => each !== String(namespace) && each !== `*${namespace ?? -1}`));
  const found = flow.nodes.flatMap(({ matches }, at) => (matches > 0 ? [at] : []));
  const node = selected === null ? undefined : flow.nodes[selected];
  const onKeyDown = (event: KeyboardEvent) => {
    const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (way !== undefined) show(Math.max(0, Math.min(flow.nodes.length - 1, (selected ?? -way) + way)));
    else if (event.key === "Enter" && node) openNode(node);
    else if (event.key === "Backspace" && node) closeNamespace(node.parent);
    else if (event.key === "Escape") select(null);
    else return;
    event.preventDefault();
  };
  return (
    <div className={styles.flow}>
      <Bar
        flow={flow}
        shown={shown}
        onShown={setShown}
        found={text ? found.length : null}
        onNext={() => show(found.find((at) => at > (selected ?? -1)) ?? found[0] ?? 0)}
        onFirst={() => onOpen(null)}
        onScale={(by) => setStep((last) => Math.max(0, Math.min(SCALES.length - 1, last + by)))}
      />
      <div className={styles.place}>
        <Labels flow={flow} layout={layout} scale={scale} top={corner.top} />
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
        {node && (
          <FlowDetails
            flow={flow}
            node={node}
            at={selected ?? 0}
            onOpen={openNode}
            onCloseNamespace={closeNamespace}
            onSelect={show}
            onShow={onShow}
            onClose={() => select(null)}
          />
        )}
      </div>
      <footer className={styles.foot}>
        <FlowLegend flow={flow} />
        <Minimap layout={layout} sight={sight} onMove={moveTo} />
      </footer>
    </div>
  );
}

interface BarProps {
  readonly flow: FlowAnswer;
  readonly shown: ReadonlySet<string>;
  /** Nodes with the searched text; null: nothing is searched. */
  readonly found: number | null;
  onShown(shown: ReadonlySet<string>): void;
  onNext(): void;
  onFirst(): void;
  onScale(by: number): void;
}

function Bar({ flow, shown, found, onShown, onNext, onFirst, onScale }: BarProps) {
  const long = new Set(flow.edges.filter(({ is_long }) => is_long).map(({ edge_class }) => edge_class));
  const classes = LONG_CLASSES.filter((each) => long.has(each));
  const toggle = (name: string) => {
    const next = new Set(shown);
    if (!next.delete(name)) next.add(name);
    onShown(next);
  };
  return (
    <div className={styles.bar}>
      <span>
        {formatPlural(flow.operators, "operator")} in {formatPlural(flow.nodes.length, "node")}
        {flow.is_recorded ? "" : ", of one rank per stage in the typical step"}
      </span>
      {classes.length > 0 && <span>Long edges:</span>}
      {classes.map((each) => (
        <label key={each}>
          <input type="checkbox" checked={shown.has(each)} onChange={() => toggle(each)} />
          {CLASS_TITLES[each]}
        </label>
      ))}
      {found !== null && (
        <Button onClick={onNext} disabled={found === 0}>
          {found === 0 ? "Nothing found" : `Next of ${formatPlural(found, "node")} found`}
        </Button>
      )}
      <span>
        <Button onClick={onFirst}>First picture</Button>
        <Button aria-label="Smaller" onClick={() => onScale(-1)}>
          −
        </Button>
        <Button aria-label="Larger" onClick={() => onScale(1)}>
          +
        </Button>
      </span>
    </div>
  );
}

interface LabelsProps {
  readonly flow: FlowAnswer;
  readonly layout: FlowLayout;
  readonly scale: number;
  readonly top: number;
}

function Labels({ flow, layout, scale, top }: LabelsProps) {
  return (
    <div className={styles.labels}>
      {flow.stages.map(({ stage, ranks }, at) => {
        const box = layout.stages[at];
        const middle = box ? (box.y + Math.min(box.height, 60) / 2) * scale - top - 16 : 0;
        return (
          <div key={stage ?? "all"} style={{ top: middle }}>
            {stage === null ? "All ranks" : `Stage ${stage}`}
            {ranks.length > 0 && <small>{formatPlural(ranks.length, "rank")}</small>}
          </div>
        );
      })}
    </div>
  );
}
