// The Marey graph of a trace: rows of stages, ranks or lanes over time, spans on them, bands between them. Redraws the loaded spans
// immediately while the window moves, and finer ones when the response for the window arrives.

import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import type { MareyRow } from "../../../api/marey.ts";
import type { MareyQuery } from "../../../api/traces-client.ts";
import { formatCount, formatPlural } from "../../../base/format.ts";
import { useInk, useSize } from "../../../charts/canvas.tsx";
import { type AskedMarey, useCurves, useMarey } from "../../../data/traces.ts";
import type { NsWindow, ParallelPage } from "../../../state/parallel.ts";
import { Frame } from "../../../widgets/frame.tsx";
import type { CutIdle } from "../steps.ts";
import { formatNs } from "./axis.ts";
import { type CurveName, type LaneCurve, listCurves } from "./curves.ts";
import { type Drawn, drawMarey } from "./drawn.ts";
import { findMarkRows, type HighlightMark } from "./highlight.ts";
import { findKeyAction, KEYS_HELP } from "./keys.ts";
import { packKind, packRamp, readPaintTokens } from "./look.ts";
import styles from "./marey-graph.module.css";
import { AXIS_PX } from "./painter.ts";
import { RowLabels } from "./row-labels.tsx";
import { placeRows } from "./rows.ts";
import type { GraphStage } from "./stage.ts";
import { Tip } from "./tip.tsx";
import { useGestures } from "./use-gestures.ts";
import { useStage } from "./use-stage.ts";

export interface GraphActions {
  onWindow(window: NsWindow, isStep: boolean): void;
  onReset(): void;
  onAll(): void;
  onHistory(way: "back" | "forward"): void;
  /** The id of a span. */
  onSelect(span: number | null): void;
  onToggle(row: string): void;
}

interface MareyGraphProps extends GraphActions {
  readonly trace: string;
  readonly title: string;
  readonly page: ParallelPage;
  readonly window: NsWindow;
  readonly extent: NsWindow;
  /** The 0 of the time axis. */
  readonly originNs: number;
  readonly stepEndsNs: readonly number[];
  /** The only visible step; null: several. */
  readonly step: number | null;
  readonly curve: CurveName | null;
  /** Highlighted over the dimmed spans; null: nothing is. */
  readonly highlight?: readonly HighlightMark[] | null;
  /** Idle time that the window leaves out, before and after it. */
  readonly cut?: CutIdle | null;
  /** Shows what was left out. */
  onCut?(): void;
  detailOf(row: MareyRow): string | null;
  ranksOf(stage: number | null): readonly number[];
  /** Passes on what is drawn, for the table, the legend and files. */
  onShown?(stage: GraphStage, drawn: Drawn): void;
}

/** Loaded on both sides of the window, so that small moves show no gaps. */
const MARGIN = 0.1;
const LABEL_PX = 118;
const NO_CURVES: readonly LaneCurve[] = [];
/** Between two points of a curve. */
const CURVE_STEP_PX = 4;

export function MareyGraph(props: MareyGraphProps) {
  const { trace, page, window, curve } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const size = useSize(scroller);
  const width = Math.max(0, size.width - LABEL_PX);
  const query = useMemo(() => (width > 0 ? toMareyQuery(page, window, width) : null), [page, window, width]);
  const source = useMarey(trace, query);
  const curves = useCurves(trace, curve === null ? null : query, Math.ceil(width / CURVE_STEP_PX)).value;
  return (
    <div className={styles.graph}>
      <div ref={scroller} className={styles.scroller}>
        {size.width > 0 && (
          <Frame source={source} what="the graph">
            {(answer) => (
              <Drawing
                {...props}
                answer={answer}
                size={{ width, height: size.height }}
                curves={curves}
                scroller={scroller}
                isCurrent={answer.query === query || JSON.stringify(answer.query) === JSON.stringify(query)}
              />
            )}
          </Frame>
        )}
      </div>
    </div>
  );
}

export function toMareyQuery(
  page: Pick<ParallelPage, "level" | "open" | "classes" | "merge">,
  { fromNs, toNs }: NsWindow,
  widthPx: number,
): MareyQuery {
  const margin = (toNs - fromNs) * MARGIN;
  return {
    level: page.level,
    open: page.open,
    fromNs: Math.floor(fromNs - margin),
    toNs: Math.ceil(toNs + margin),
    pixels: Math.ceil((widthPx * (1 + 2 * MARGIN)) / 50) * 50,
    classes: page.classes,
    merge: page.merge,
  };
}

interface DrawingProps extends MareyGraphProps {
  readonly answer: AskedMarey;
  readonly size: { readonly width: number; readonly height: number };
  readonly curves: ReturnType<typeof useCurves>["value"];
  readonly scroller: React.RefObject<HTMLDivElement | null>;
  readonly isCurrent: boolean;
}

function Drawing(props: DrawingProps) {
  const { answer, size, page, window, extent, originNs, isCurrent, scroller } = props;
  const { rows } = answer.marey;
  const [back, spans, front] = [
    useRef<HTMLCanvasElement>(null),
    useRef<HTMLCanvasElement>(null),
    useRef<HTMLCanvasElement>(null),
  ];
  const place = useRef<HTMLDivElement>(null);
  const brush = useRef<HTMLDivElement>(null);
  const canvases = useMemo(() => ({ back, spans, front, brush }), [back, spans, front]);
  const { stage, failure } = useStage(canvases, size);
  // The highlighted step changes together with the response, so that a zoom is drawn twice and not three times.
  const drawn = useDrawn(answer, page, useLatest(props.step, isCurrent));
  const selected = useMemo(() => findSpan(drawn, page.span), [drawn, page.span]);
  const placed = useMemo(() => placeRows(rows, size.height - AXIS_PX), [rows, size.height]);
  const scrollY = useScroll(scroller, stage);
  const drawnWindow = useStageInputs(props, stage, drawn, selected);
  const select = (span: number | null) => props.onSelect(span === null ? null : idOf(drawn, span));
  const { pointed, handlers } = useGestures({
    stage,
    place,
    extent,
    onWindow: props.onWindow,
    onSelect: (hit) => select(hit?.span ?? null),
  });
  const onKeyDown = (event: KeyboardEvent) => {
    if (stage === null || event.metaKey || event.ctrlKey || event.altKey) return;
    const action = findKeyAction(event.key, { stage, extent, selected });
    if (action === null) return;
    event.preventDefault();
    if (action.kind === "window") {
      stage.setWindow(action.window);
      props.onWindow(action.window, false);
    } else if (action.kind === "select") select(action.span);
    else if (action.kind === "reset") props.onReset();
    else if (action.kind === "all") props.onAll();
    else props.onHistory(action.kind);
  };
  if (failure) return <p className={styles.failure}>{failure}. The table shows the same spans.</p>;
  return (
    <div style={{ height: Math.max(size.height, placed.total + AXIS_PX) }}>
      <div className={styles.sticky} style={{ height: size.height }}>
        <RowLabels
          rows={rows}
          placed={placed}
          scrollY={scrollY}
          height={size.height}
          detailOf={props.detailOf}
          onToggle={props.onToggle}
        />
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be drawn in */}
        <div
          ref={place}
          role="group"
          aria-label={describe(props.title, drawn, window, originNs)}
          aria-describedby="parallel-keys"
          aria-busy={!isCurrent}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: keys move, zoom and select here as the mouse does
          tabIndex={0}
          className={styles.drawing}
          data-drawn={drawnWindow}
          data-dimmed={props.highlight ? true : undefined}
          onKeyDown={onKeyDown}
          onDoubleClick={props.onReset}
          {...handlers}
        >
          <canvas ref={back} />
          <canvas ref={spans} />
          <canvas ref={front} />
          <div ref={brush} className={styles.brush} />
          {props.cut && <CutLabels cut={props.cut} onShow={props.onCut} />}
          {pointed && <Tip drawn={drawn} pointed={pointed} originNs={originNs} size={size} />}
        </div>
        <p id="parallel-keys" data-visually-hidden={true}>
          {KEYS_HELP}
        </p>
      </div>
    </div>
  );
}

function CutLabels({ cut, onShow }: { readonly cut: CutIdle; readonly onShow: (() => void) | undefined }) {
  const sides = [
    { side: "before", ns: cut.beforeNs },
    { side: "after", ns: cut.afterNs },
  ] as const;
  return (
    <>
      {sides.map(({ side, ns }) =>
        ns > 0 ? (
          <button
            key={side}
            type="button"
            className={styles.cut}
            data-side={side}
            data-tip={`Idle time ${side} the activity is not shown. Click to show it.`}
            onPointerDown={(event) => event.stopPropagation()}
            onDoubleClick={(event) => event.stopPropagation()}
            onClick={onShow}
          >
            {side === "before" ? "← " : ""}
            {formatNs(ns)} idle {side}
            {side === "after" ? " →" : ""}
          </button>
        ) : null,
      )}
    </>
  );
}

/** The latest value from when it was current. */
function useLatest<T>(value: T, isCurrent: boolean): T {
  const last = useRef(value);
  if (isCurrent) last.current = value;
  return last.current;
}

function useDrawn({ marey, query }: AskedMarey, page: ParallelPage, step: number | null): Drawn {
  const ink = useInk();
  const { color, text } = page;
  return useMemo(
    () => drawMarey(marey, query.fromNs, { by: color, text, colorOf: packKind(ink), rampOf: packRamp, step }),
    [marey, query, color, text, ink, step],
  );
}

/** Passes all inputs to the stage; returns the window that is drawn, which tests wait for. */
function useStageInputs(props: DrawingProps, stage: GraphStage | null, drawn: Drawn, selected: number | null): string {
  const { window, originNs, stepEndsNs, curves, curve, answer, onShown } = props;
  const ink = useInk();
  const [drawnWindow, setDrawnWindow] = useState("");
  const onShownRef = useRef(onShown);
  onShownRef.current = onShown;
  const ranks = useRef(props.ranksOf);
  ranks.current = props.ranksOf;
  useEffect(() => {
    stage?.setWindow(window);
  }, [stage, window]);
  useEffect(() => {
    if (stage === null) return;
    stage.onDrawn = () => setDrawnWindow(`${answer.query.fromNs}~${answer.query.toNs}`);
    stage.setDrawn(drawn);
    onShownRef.current?.(stage, drawn);
  }, [stage, drawn, answer]);
  useEffect(() => {
    stage?.setSelected(selected);
  }, [stage, selected]);
  const { highlight } = props;
  useEffect(() => {
    const rowsOf = highlight ? findMarkRows(highlight, answer.marey.rows, ranks.current) : [];
    const marks = highlight?.flatMap((mark, at) =>
      (rowsOf[at] ?? []).map((row) => ({ ...mark, row, color: ink(mark.color) })),
    );
    stage?.setMarks(marks ?? null);
  }, [stage, highlight, answer.marey.rows, ink]);
  useEffect(() => {
    stage?.setLook({
      tokens: readPaintTokens(ink),
      originNs,
      stepEndsNs,
      curves: curve === null ? NO_CURVES : listCurves(curves, curve, answer.marey.rows, ranks.current, ink),
    });
  }, [stage, ink, originNs, stepEndsNs, curves, curve, answer]);
  return drawnWindow;
}

function useScroll(scroller: React.RefObject<HTMLDivElement | null>, stage: GraphStage | null): number {
  const [scrollY, setScrollY] = useState(0);
  useEffect(() => {
    const element = scroller.current;
    if (element === null || stage === null) return;
    const read = () => {
      stage.setScroll(element.scrollTop);
      setScrollY(element.scrollTop);
    };
    read();
    element.addEventListener("scroll", read, { passive: true });
    return () => element.removeEventListener("scroll", read);
  }, [scroller, stage]);
  return scrollY;
}

/** The index of a span by its id, or by that of its longest merged span. */
function findSpan({ marey: { spans } }: Drawn, id: number | null): number | null {
  if (id === null) return null;
  const exact = spans.span.indexOf(id);
  const index = exact >= 0 ? exact : spans.worstSpan.indexOf(id);
  return index >= 0 ? index : null;
}

export function idOf({ marey: { spans } }: Drawn, span: number): number | null {
  const spanId = spans.span[span] ?? Number.NaN;
  const id = Number.isNaN(spanId) || spanId < 0 ? (spans.worstSpan[span] ?? Number.NaN) : spanId;
  return Number.isNaN(id) ? null : id;
}

function describe(title: string, { marey }: Drawn, { fromNs, toNs }: NsWindow, originNs: number): string {
  const { rows, spans, bands } = marey;
  const merged = spans.members.reduce((sum, count) => sum + (Number.isNaN(count) ? 1 : count), 0);
  return (
    `Marey graph of ${title}: ${formatPlural(rows.length, "row")}, ${formatPlural(spans.count, "span")}` +
    `${merged > spans.count ? ` for ${formatCount(merged)}` : ""}, ${formatPlural(bands.count, "band")}, ` +
    `${formatNs(fromNs - originNs)} to ${formatNs(toNs - originNs)}`
  );
}
