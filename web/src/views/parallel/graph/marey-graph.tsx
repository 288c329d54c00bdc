// The enhanced Marey graph of a trace: rows of stages, ranks or lanes over time, spans on them, bands between them. Draws what
// it is handed at once when the reader moves, and finer when the server's answer for the window is there.

import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import type { MareyRow } from "../../../api/marey.ts";
import type { MareyQuery } from "../../../api/traces-client.ts";
import { formatCount, formatPlural } from "../../../base/format.ts";
import { useInk, useSize } from "../../../charts/canvas.tsx";
import { type AskedMarey, useCurves, useMarey } from "../../../data/traces.ts";
import type { NsWindow, ParallelPage } from "../../../state/parallel.ts";
import { Frame } from "../../../widgets/frame.tsx";
import { sayNs } from "./axis.ts";
import { type CurveName, type LaneCurve, listCurves } from "./curves.ts";
import { type Drawn, drawMarey } from "./drawn.ts";
import { findDeed, KEYS_HELP } from "./keys.ts";
import { packKind, packRamp, readPaintTokens } from "./look.ts";
import styles from "./marey-graph.module.css";
import { AXIS_PX } from "./painter.ts";
import { RowLabels } from "./row-labels.tsx";
import { placeRows } from "./rows.ts";
import type { GraphStage } from "./stage.ts";
import { Tip } from "./tip.tsx";
import { useGestures } from "./use-gestures.ts";
import { useStage } from "./use-stage.ts";

export interface GraphDeeds {
  onWindow(window: NsWindow, isStep: boolean): void;
  onReset(): void;
  onAll(): void;
  onHistory(way: "back" | "forward"): void;
  /** The id of a span. */
  onSelect(span: number | null): void;
  onToggle(row: string): void;
}

interface MareyGraphProps extends GraphDeeds {
  readonly trace: string;
  readonly title: string;
  readonly page: ParallelPage;
  readonly window: NsWindow;
  readonly extent: NsWindow;
  /** What the axis calls 0. */
  readonly originNs: number;
  readonly stepEndsNs: readonly number[];
  /** The only step in sight; null: there are several. */
  readonly step: number | null;
  readonly curve: CurveName | null;
  detailOf(row: MareyRow): string | null;
  ranksOf(stage: number | null): readonly number[];
  /** What is drawn now, for the table, the legend and files. */
  onShown?(stage: GraphStage, drawn: Drawn): void;
}

/** Beside the window on both sides, so that moving a little shows no blank. */
const MARGIN = 0.1;
const LABEL_PX = 118;
const NO_CURVES: readonly LaneCurve[] = [];
/** Between two points of a small curve. */
const CURVE_STEP_PX = 4;

export function MareyGraph(props: MareyGraphProps) {
  const { trace, page, window, curve } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const size = useSize(scroller);
  const width = Math.max(0, size.width - LABEL_PX);
  const query = useMemo(() => (width > 0 ? askFor(page, window, width) : null), [page, window, width]);
  const source = useMarey(trace, query);
  const curves = useCurves(trace, curve === null ? null : query, Math.ceil(width / CURVE_STEP_PX)).value;
  return (
    <div className={styles.graph}>
      <div ref={scroller} className={styles.scroller}>
        {size.width > 0 && (
          <Frame source={source} what="the graph">
            {(asked) => (
              <Drawing
                {...props}
                asked={asked}
                size={{ width, height: size.height }}
                curves={curves}
                scroller={scroller}
                isCurrent={asked.query === query || JSON.stringify(asked.query) === JSON.stringify(query)}
              />
            )}
          </Frame>
        )}
      </div>
    </div>
  );
}

export function askFor(
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
  readonly asked: AskedMarey;
  readonly size: { readonly width: number; readonly height: number };
  readonly curves: ReturnType<typeof useCurves>["value"];
  readonly scroller: React.RefObject<HTMLDivElement | null>;
  readonly isCurrent: boolean;
}

function Drawing(props: DrawingProps) {
  const { asked, size, page, window, extent, originNs, isCurrent, scroller } = props;
  const { rows } = asked.marey;
  const [back, spans, front] = [
    useRef<HTMLCanvasElement>(null),
    useRef<HTMLCanvasElement>(null),
    useRef<HTMLCanvasElement>(null),
  ];
  const place = useRef<HTMLDivElement>(null);
  const brush = useRef<HTMLDivElement>(null);
  const canvases = useMemo(() => ({ back, spans, front, brush }), [back, spans, front]);
  const { stage, failure } = useStage(canvases, size);
  // What stands out changes with the answer, so that a brush is drawn twice and not three times.
  const drawn = useDrawn(asked, page, useLast(props.step, isCurrent));
  const selected = useMemo(() => findSpan(drawn, page.span), [drawn, page.span]);
  const placed = useMemo(() => placeRows(rows, size.height - AXIS_PX), [rows, size.height]);
  const scrollY = useScroll(scroller, stage);
  const shownAs = useShown(props, stage, drawn, selected);
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
    const deed = findDeed(event.key, { stage, extent, selected });
    if (deed === null) return;
    event.preventDefault();
    if (deed.kind === "window") {
      stage.setWindow(deed.window);
      props.onWindow(deed.window, false);
    } else if (deed.kind === "select") select(deed.span);
    else if (deed.kind === "reset") props.onReset();
    else if (deed.kind === "all") props.onAll();
    else props.onHistory(deed.kind);
  };
  if (failure) return <p className={styles.failure}>{failure}: the same spans are in the table.</p>;
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
          data-drawn={shownAs}
          onKeyDown={onKeyDown}
          onDoubleClick={props.onReset}
          {...handlers}
        >
          <canvas ref={back} />
          <canvas ref={spans} />
          <canvas ref={front} />
          <div ref={brush} className={styles.brush} />
          {pointed && <Tip drawn={drawn} pointed={pointed} originNs={originNs} size={size} />}
        </div>
        <p id="parallel-keys" data-visually-hidden={true}>
          {KEYS_HELP}
        </p>
      </div>
    </div>
  );
}

/** The value when it last was current. */
function useLast<T>(value: T, isCurrent: boolean): T {
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

/** Hands the stage what it shall show; gives back which window's answer is on the screen, for those who wait for it. */
function useShown(props: DrawingProps, stage: GraphStage | null, drawn: Drawn, selected: number | null): string {
  const { window, originNs, stepEndsNs, curves, curve, asked, onShown } = props;
  const ink = useInk();
  const [shownAs, setShownAs] = useState("");
  const tell = useRef(onShown);
  tell.current = onShown;
  const ranks = useRef(props.ranksOf);
  ranks.current = props.ranksOf;
  useEffect(() => {
    stage?.setWindow(window);
  }, [stage, window]);
  useEffect(() => {
    if (stage === null) return;
    stage.onDrawn = () => setShownAs(`${asked.query.fromNs}~${asked.query.toNs}`);
    stage.setDrawn(drawn);
    tell.current?.(stage, drawn);
  }, [stage, drawn, asked]);
  useEffect(() => {
    stage?.setSelected(selected);
  }, [stage, selected]);
  useEffect(() => {
    stage?.setLook({
      tokens: readPaintTokens(ink),
      originNs,
      stepEndsNs,
      curves: curve === null ? NO_CURVES : listCurves(curves, curve, asked.marey.rows, ranks.current, ink),
    });
  }, [stage, ink, originNs, stepEndsNs, curves, curve, asked]);
  return shownAs;
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

/** A span is found by its own id, or as the longest of those merged into one. */
function findSpan({ marey: { spans } }: Drawn, id: number | null): number | null {
  if (id === null) return null;
  const own = spans.span.indexOf(id);
  const found = own >= 0 ? own : spans.worstSpan.indexOf(id);
  return found >= 0 ? found : null;
}

export function idOf({ marey: { spans } }: Drawn, span: number): number | null {
  const own = spans.span[span] ?? Number.NaN;
  const id = Number.isNaN(own) || own < 0 ? (spans.worstSpan[span] ?? Number.NaN) : own;
  return Number.isNaN(id) ? null : id;
}

function describe(title: string, { marey }: Drawn, { fromNs, toNs }: NsWindow, originNs: number): string {
  const { rows, spans, bands } = marey;
  const merged = spans.members.reduce((sum, count) => sum + (Number.isNaN(count) ? 1 : count), 0);
  return (
    `Marey graph of ${title}: ${formatPlural(rows.length, "row")}, ${formatPlural(spans.count, "span")}` +
    `${merged > spans.count ? ` for ${formatCount(merged)}` : ""}, ${formatPlural(bands.count, "band")}, ` +
    `${sayNs(fromNs - originNs)} to ${sayNs(toNs - originNs)}`
  );
}
