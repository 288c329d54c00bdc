// Small multiples on one canvas: bars or a line per unit, in the color of its cluster, with marks of rules. Hover shows
// values, click and box select, arrow keys do both.

import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { Canvas, type Ink, type Size, useInk, useSize } from "./canvas.tsx";
import {
  type Box,
  findPlot,
  findPlots,
  type Level,
  layoutMultiples,
  type MultiplesGroup,
  type MultiplesLayout,
  stepPlot,
} from "./multiples-layout.ts";
import type { Pen } from "./pen.ts";
import styles from "./small-multiples.module.css";

export interface PlotMark {
  readonly color: string;
  /** Outlined where it is over. */
  readonly isPast: boolean;
}

export interface SmallPlot {
  readonly key: string;
  readonly color: string;
  /** Bars: heights; lines: values with NaN for gaps. All 0–1, already scaled alike. */
  readonly values: ArrayLike<number>;
  /** 0–1, for where there is only room for a shade; null: nothing is known. */
  readonly level: number | null;
  readonly marks: readonly PlotMark[];
  readonly isOdd: boolean;
}

export type SelectMode = "replace" | "add" | "toggle";

interface SmallMultiplesProps {
  readonly label: string;
  readonly kind: "bars" | "line";
  readonly plots: readonly SmallPlot[];
  readonly groups: readonly MultiplesGroup[];
  /** Indices; none: nothing stands back. */
  readonly selected: ReadonlySet<number>;
  say(plot: number): ReactNode;
  onSelect(plots: readonly number[], mode: SelectMode): void;
  onPoint?(plot: number | null): void;
  /** How much of each there is room for. */
  onLevel?(level: Level): void;
}

const LEAST_DRAG_PX = 4;
const TIP_WIDTH = 230;

export function SmallMultiples(props: SmallMultiplesProps) {
  const { label, kind, plots, groups, selected, say, onSelect, onPoint, onLevel } = props;
  const place = useRef<HTMLDivElement>(null);
  const { width, height } = useSize(place);
  const ink = useInk();
  const [pointed, setPointed] = useState<number | null>(null);
  const [drag, setDrag] = useState<Box | null>(null);
  const start = useRef<{ x: number; y: number } | null>(null);
  const layout = useMemo(() => layoutMultiples(groups, width, height), [groups, width, height]);
  useEffect(() => onLevel?.(layout.level), [layout.level, onLevel]);
  const draw = useCallback(
    (pen: Pen) => paintPlots(pen, layout, plots, kind, selected, ink),
    [layout, plots, kind, selected, ink],
  );

  const point = (plot: number | null) => {
    if (plot === pointed) return;
    setPointed(plot);
    onPoint?.(plot);
  };
  const at = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top + event.currentTarget.scrollTop };
  };
  const onPointerMove = (event: PointerEvent<HTMLElement>) => {
    const { x, y } = at(event);
    point(findPlot(layout, x, y));
    const from = start.current;
    if (from && (drag || Math.hypot(x - from.x, y - from.y) >= LEAST_DRAG_PX)) setDrag(toBox(from, { x, y }));
  };
  const onPointerUp = (event: PointerEvent<HTMLElement>) => {
    const mode = event.shiftKey ? "add" : event.ctrlKey || event.metaKey ? "toggle" : "replace";
    const { x, y } = at(event);
    if (drag) onSelect(findPlots(layout, drag), mode);
    else if (start.current) {
      const plot = findPlot(layout, x, y);
      onSelect(plot === null ? [] : [plot], mode);
    }
    start.current = null;
    setDrag(null);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const next = stepPlot(layout, pointed, event.key);
    if (next !== null) {
      point(next);
      if (event.shiftKey) onSelect([next], "add");
    } else if ((event.key === " " || event.key === "Enter") && pointed !== null) {
      onSelect([pointed], event.shiftKey ? "add" : "toggle");
    } else if (event.key === "Escape" && selected.size > 0) onSelect([], "replace");
    else if (event.key.toLowerCase() === "a" && (event.ctrlKey || event.metaKey)) {
      onSelect(
        plots.map((_, index) => index),
        "replace",
      );
    } else return;
    event.preventDefault();
  };

  const spot = pointed === null ? undefined : layout.plots.find(({ plot }) => plot === pointed);
  const full: Size = { width, height: Math.max(height, layout.height) };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be drawn in
    <div
      ref={place}
      role="group"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keys point and select here as the mouse does
      tabIndex={0}
      className={styles.place}
      data-level={layout.level}
      data-plot-count={plots.length}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        start.current = at(event);
      }}
      onPointerMove={onPointerMove}
      onPointerUp={onPointerUp}
      onPointerCancel={() => setDrag(null)}
      onPointerLeave={() => point(null)}
      onBlur={() => point(null)}
      onKeyDown={onKeyDown}
    >
      {width > 0 && <Canvas size={full} draw={draw} />}
      {drag && (
        <i
          className={styles.box}
          style={{ left: drag.left, top: drag.top, width: drag.right - drag.left, height: drag.bottom - drag.top }}
        />
      )}
      {spot && (
        <>
          <i
            className={styles.pointed}
            style={{ left: spot.left, top: spot.top, width: layout.plotWidth, height: layout.plotHeight }}
          />
          <div className={styles.tip} role="status" style={placeTip(spot.left, spot.top, layout, full)}>
            {say(spot.plot)}
          </div>
        </>
      )}
    </div>
  );
}

function toBox(a: { x: number; y: number }, b: { x: number; y: number }): Box {
  return {
    left: Math.min(a.x, b.x),
    top: Math.min(a.y, b.y),
    right: Math.max(a.x, b.x),
    bottom: Math.max(a.y, b.y),
  };
}

function placeTip(left: number, top: number, { plotWidth, plotHeight }: MultiplesLayout, { width, height }: Size) {
  const isLow = top > height * 0.6;
  return {
    left: Math.max(0, Math.min(left + plotWidth / 2 - TIP_WIDTH / 2, width - TIP_WIDTH)),
    width: TIP_WIDTH,
    ...(isLow ? { bottom: height - top + 6 } : { top: top + plotHeight + 6 }),
  };
}

const BACK_ALPHA = 0.22;

function paintPlots(
  pen: Pen,
  layout: MultiplesLayout,
  plots: readonly SmallPlot[],
  kind: "bars" | "line",
  selected: ReadonlySet<number>,
  ink: Ink,
): void {
  const { level, plotWidth, plotHeight } = layout;
  paintTitles(pen, layout, ink);
  for (const { plot: index, left, top } of layout.plots) {
    const plot = plots[index];
    if (!plot) continue;
    const isBack = selected.size > 0 && !selected.has(index);
    pen.save();
    pen.translate(left, top);
    if (level === "cell") paintCell(pen, plot, plotWidth, plotHeight, isBack, ink);
    else {
      pen.fillStyle = ink("var(--raised)");
      pen.fillRect(0, 0, plotWidth, plotHeight);
      pen.globalAlpha = isBack ? BACK_ALPHA : 1;
      if (plot.values.length === 0) hatch(pen, plotWidth, plotHeight, ink("var(--line)"));
      else if (level === "strip") paintStrip(pen, plot, plotWidth, plotHeight, ink);
      else if (kind === "bars") paintBars(pen, plot, plotWidth, plotHeight, ink);
      else paintLine(pen, plot, plotWidth, plotHeight, ink);
      pen.globalAlpha = 1;
      if (level === "plot") paintMarks(pen, plot.marks, plotWidth, ink);
      else if (plot.marks.length > 0) paintCorner(pen, plot.marks[0], plotWidth, plotHeight, ink);
    }
    if (plot.isOdd) outline(pen, plotWidth, plotHeight, ink("var(--warn)"), [3, 2]);
    if (selected.has(index)) outline(pen, plotWidth, plotHeight, ink("var(--text)"), []);
    pen.restore();
  }
}

function paintTitles(pen: Pen, { titles, titleWidth, level }: MultiplesLayout, ink: Ink): void {
  pen.fillStyle = ink("var(--muted)");
  pen.font = `${level === "plot" ? 11 : 9}px "Inter Variable", system-ui, sans-serif`;
  pen.textBaseline = "middle";
  let last = Number.NEGATIVE_INFINITY;
  let lastLeft = -1;
  for (const { title, left, middle } of titles) {
    // Rows of cells are lower than letters.
    if (left === lastLeft && middle - last < 10) continue;
    [last, lastLeft] = [middle, left];
    pen.fillText(shorten(pen, title, titleWidth - 6), left, middle);
  }
}

function shorten(pen: Pen, text: string, width: number): string {
  if (pen.measureText(text).width <= width) return text;
  let short = text;
  while (short.length > 1 && pen.measureText(`…${short}`).width > width) short = short.slice(1);
  return `…${short}`;
}

function paintBars(pen: Pen, plot: SmallPlot, width: number, height: number, ink: Ink): void {
  const { values } = plot;
  const inner = width - 4;
  const step = inner / values.length;
  const bar = Math.max(0.7, step - (step > 2.4 ? 0.8 : 0));
  pen.fillStyle = ink(plot.color);
  for (let bin = 0; bin < values.length; bin += 1) {
    const value = values[bin] ?? 0;
    if (value <= 0) continue;
    // A trace of something is not nothing.
    const tall = Math.max(1, value * (height - 3));
    pen.fillRect(2 + bin * step, height - tall, bar, tall);
  }
}

function paintLine(pen: Pen, plot: SmallPlot, width: number, height: number, ink: Ink): void {
  const { values } = plot;
  pen.strokeStyle = ink(plot.color);
  pen.lineWidth = 1;
  pen.lineJoin = "round";
  pen.beginPath();
  let isDown = false;
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] ?? Number.NaN;
    if (Number.isNaN(value)) {
      isDown = false;
      continue;
    }
    const x = 2 + (index / Math.max(1, values.length - 1)) * (width - 4);
    const y = height - 2 - value * (height - 4);
    if (isDown) pen.lineTo(x, y);
    else pen.moveTo(x, y);
    isDown = true;
  }
  pen.stroke();
}

/** The same values as shades along a strip. */
function paintStrip(pen: Pen, plot: SmallPlot, width: number, height: number, ink: Ink): void {
  const { values } = plot;
  const alpha = pen.globalAlpha;
  const step = width / values.length;
  pen.fillStyle = ink(plot.color);
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] ?? Number.NaN;
    if (!(value > 0)) continue;
    pen.globalAlpha = alpha * (0.12 + 0.88 * Math.min(1, value));
    pen.fillRect(index * step, 0, Math.ceil(step), height);
  }
  pen.globalAlpha = alpha;
}

function paintCell(pen: Pen, plot: SmallPlot, width: number, height: number, isBack: boolean, ink: Ink): void {
  if (plot.level === null) {
    outline(pen, width, height, ink("var(--line)"), []);
    return;
  }
  pen.globalAlpha = (isBack ? BACK_ALPHA : 1) * (0.25 + 0.75 * plot.level);
  pen.fillStyle = ink(plot.color);
  pen.fillRect(0, 0, width, height);
  pen.globalAlpha = 1;
}

function paintMarks(pen: Pen, marks: readonly PlotMark[], width: number, ink: Ink): void {
  marks.slice(0, 5).forEach((mark, place) => {
    const x = width - 6 - (Math.min(marks.length, 5) - 1 - place) * 7;
    pen.beginPath();
    pen.arc(x, 6, mark.isPast ? 2 : 2.6, 0, 2 * Math.PI);
    if (mark.isPast) {
      pen.strokeStyle = ink(mark.color);
      pen.lineWidth = 1.2;
      pen.stroke();
    } else {
      pen.fillStyle = ink(mark.color);
      pen.fill();
    }
  });
}

/** Where there is no room for dots: a corner in the color of the first rule. */
function paintCorner(pen: Pen, mark: PlotMark | undefined, width: number, height: number, ink: Ink): void {
  if (!mark || mark.isPast) return;
  const side = Math.min(5, height * 0.4);
  pen.fillStyle = ink(mark.color);
  pen.beginPath();
  pen.moveTo(width - side, 0);
  pen.lineTo(width, 0);
  pen.lineTo(width, side);
  pen.fill();
}

function outline(pen: Pen, width: number, height: number, color: string, dash: readonly number[]): void {
  pen.strokeStyle = color;
  pen.lineWidth = 1;
  pen.setLineDash([...dash]);
  pen.strokeRect(0.5, 0.5, width - 1, height - 1);
  pen.setLineDash([]);
}

function hatch(pen: Pen, width: number, height: number, color: string): void {
  pen.save();
  pen.beginPath();
  pen.rect(0, 0, width, height);
  pen.clip();
  pen.strokeStyle = color;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let x = -height; x < width; x += 6) {
    pen.moveTo(x, height);
    pen.lineTo(x + height, 0);
  }
  pen.stroke();
  pen.restore();
}
