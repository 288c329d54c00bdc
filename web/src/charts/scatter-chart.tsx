// A scatter plot of two metrics: density at the back, points in front, outliers last and brightest. A rectangle can be
// brushed.

import { type KeyboardEvent, type PointerEvent, useCallback, useRef, useState } from "react";
import { Canvas, type Ink, type Size, useInk, useSize } from "./canvas.tsx";
import type { Pen } from "./pen.ts";
import styles from "./scatter-chart.module.css";

export interface ScatterDensity {
  readonly xLow: number;
  readonly xHigh: number;
  readonly yLow: number;
  readonly yHigh: number;
  readonly columns: number;
  /** Row by row from the lowest y. */
  readonly counts: Float64Array;
}

export interface Rectangle {
  readonly xFrom: number;
  readonly xTo: number;
  readonly yFrom: number;
  readonly yTo: number;
}

interface ScatterChartProps {
  readonly label: string;
  readonly x: Float64Array;
  readonly y: Float64Array;
  /** By point: index into `colors`. */
  readonly colorOf: Uint8Array;
  readonly colors: readonly string[];
  readonly isOutlier: Uint8Array;
  /** 0: stands back. Null: none does. */
  readonly isLit: Uint8Array | null;
  readonly density: ScatterDensity | null;
  readonly bounds: Rectangle;
  readonly brush: Rectangle | null;
  onBrush(brush: Rectangle | null): void;
}

const LEAST_DRAG_PX = 4;
const EDGE_PX = 6;

export function ScatterChart(props: ScatterChartProps) {
  const { label, bounds, brush, onBrush } = props;
  const { x, y, colorOf, colors, isOutlier, isLit, density } = props;
  const place = useRef<HTMLDivElement>(null);
  const size = useSize(place);
  const ink = useInk();
  const [drag, setDrag] = useState<Rectangle | null>(null);
  const from = useRef<{ x: number; y: number; clientX: number; clientY: number } | null>(null);
  const draw = useCallback(
    (pen: Pen, sheet: Size) => {
      const scale = toScale(bounds, sheet);
      if (density && isLit === null) paintDensity(pen, density, scale, ink("var(--muted)"));
      paintPoints(pen, { x, y, colorOf, colors, isOutlier, isLit }, scale, ink);
    },
    [x, y, colorOf, colors, isOutlier, isLit, density, bounds, ink],
  );
  const at = (event: PointerEvent) => {
    const box = place.current?.getBoundingClientRect();
    if (!box) return { x: 0, y: 0 };
    return fromPixels(bounds, size, event.clientX - box.left, event.clientY - box.top);
  };
  const onPointerMove = (event: PointerEvent) => {
    const start = from.current;
    if (start === null) return;
    if (Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) < LEAST_DRAG_PX) return;
    setDrag(toRectangle(start, at(event)));
  };
  const onPointerUp = () => {
    if (from.current) onBrush(drag);
    from.current = null;
    setDrag(null);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const moved = moveBrush(brush ?? middleOf(bounds), bounds, event.key, event.shiftKey);
    if (event.key === "Escape" && brush) onBrush(null);
    else if (moved) onBrush(moved);
    else return;
    event.preventDefault();
  };
  const shown = drag ?? brush;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be drawn in
    <div
      ref={place}
      role="group"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keys draw here as the mouse does
      tabIndex={0}
      className={styles.chart}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = { ...at(event), clientX: event.clientX, clientY: event.clientY };
      }}
      onPointerMove={onPointerMove}
      onPointerUp={onPointerUp}
      onPointerCancel={() => setDrag(null)}
      onKeyDown={onKeyDown}
    >
      {size.width > 0 && <Canvas size={size} draw={draw} />}
      {shown && size.width > 0 && <i className={styles.brush} style={toStyle(shown, bounds, size)} />}
    </div>
  );
}

interface Scale {
  readonly toX: (value: number) => number;
  readonly toY: (value: number) => number;
}

function toScale({ xFrom, xTo, yFrom, yTo }: Rectangle, { width, height }: Size): Scale {
  return {
    toX: (value) => EDGE_PX + ((value - xFrom) / (xTo - xFrom || 1)) * (width - 2 * EDGE_PX),
    toY: (value) => height - EDGE_PX - ((value - yFrom) / (yTo - yFrom || 1)) * (height - 2 * EDGE_PX),
  };
}

function fromPixels({ xFrom, xTo, yFrom, yTo }: Rectangle, { width, height }: Size, left: number, top: number) {
  return {
    x: xFrom + ((left - EDGE_PX) / Math.max(1, width - 2 * EDGE_PX)) * (xTo - xFrom),
    y: yFrom + ((height - EDGE_PX - top) / Math.max(1, height - 2 * EDGE_PX)) * (yTo - yFrom),
  };
}

/** Four digits of the shown range: what a pixel can tell, and short in a link. */
function roundTo(value: number, range: number): number {
  const step = 10 ** (Math.floor(Math.log10(Math.abs(range) || 1)) - 3);
  return Number((Math.round(value / step) * step).toPrecision(8));
}

function toRectangle(a: { x: number; y: number }, b: { x: number; y: number }): Rectangle | null {
  const [width, height] = [Math.abs(a.x - b.x), Math.abs(a.y - b.y)];
  if (width === 0 || height === 0) return null;
  return {
    xFrom: roundTo(Math.min(a.x, b.x), width),
    xTo: roundTo(Math.max(a.x, b.x), width),
    yFrom: roundTo(Math.min(a.y, b.y), height),
    yTo: roundTo(Math.max(a.y, b.y), height),
  };
}

function middleOf({ xFrom, xTo, yFrom, yTo }: Rectangle): Rectangle {
  const [w, h] = [xTo - xFrom, yTo - yFrom];
  return { xFrom: xFrom + w * 0.4, xTo: xFrom + w * 0.6, yFrom: yFrom + h * 0.4, yTo: yFrom + h * 0.6 };
}

const KEY_STEP = 0.04;

/** Arrows move it, with Shift its upper right corner. */
export function moveBrush(brush: Rectangle, bounds: Rectangle, key: string, isResized: boolean): Rectangle | null {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key];
  if (step === undefined) return null;
  const dx = (step[0] ?? 0) * KEY_STEP * (bounds.xTo - bounds.xFrom);
  const dy = (step[1] ?? 0) * KEY_STEP * (bounds.yTo - bounds.yFrom);
  const moved = {
    xFrom: brush.xFrom + (isResized ? 0 : dx),
    xTo: brush.xTo + dx,
    yFrom: brush.yFrom + (isResized ? 0 : dy),
    yTo: brush.yTo + dy,
  };
  return toRectangle({ x: moved.xFrom, y: moved.yFrom }, { x: moved.xTo, y: moved.yTo });
}

function toStyle(brush: Rectangle, bounds: Rectangle, size: Size) {
  const { toX, toY } = toScale(bounds, size);
  return {
    left: toX(brush.xFrom),
    top: toY(brush.yTo),
    width: Math.max(2, toX(brush.xTo) - toX(brush.xFrom)),
    height: Math.max(2, toY(brush.yFrom) - toY(brush.yTo)),
  };
}

function paintDensity(pen: Pen, density: ScatterDensity, { toX, toY }: Scale, color: string): void {
  const { xLow, xHigh, yLow, yHigh, columns, counts } = density;
  const rows = counts.length / columns;
  const most = counts.reduce((one, other) => Math.max(one, other), 1);
  const [w, h] = [(xHigh - xLow) / columns, (yHigh - yLow) / rows];
  pen.fillStyle = color;
  counts.forEach((count, at) => {
    if (count === 0) return;
    const [down, across] = [Math.floor(at / columns), at % columns];
    // Logarithmic: a place with a thousandth of the points is still seen.
    pen.globalAlpha = 0.08 + 0.42 * (Math.log1p(count) / Math.log1p(most));
    const left = toX(xLow + across * w);
    const top = toY(yLow + (down + 1) * h);
    pen.fillRect(left, top, Math.ceil(toX(xLow + (across + 1) * w) - left), Math.ceil(toY(yLow + down * h) - top));
  });
  pen.globalAlpha = 1;
}

type Points = Pick<ScatterChartProps, "x" | "y" | "colorOf" | "colors" | "isOutlier" | "isLit">;

function paintPoints(pen: Pen, points: Points, { toX, toY }: Scale, ink: Ink): void {
  const { x, y, colorOf, colors, isOutlier, isLit } = points;
  const isMany = x.length > 4000;
  const scale = x.length < 200 ? 2 : 1;
  for (const pass of [0, 1]) {
    colors.forEach((color, index) => {
      pen.fillStyle = ink(color);
      for (let at = 0; at < x.length; at += 1) {
        if (colorOf[at] !== index || (isOutlier[at] ?? 0) !== pass) continue;
        const isBack = isLit !== null && isLit[at] === 0;
        pen.globalAlpha = isBack ? 0.06 : pass === 1 ? 0.95 : isMany ? 0.28 : 0.5;
        const size = (pass === 1 ? 2.6 : 1.6) * scale;
        pen.fillRect(toX(x[at] ?? 0) - size / 2, toY(y[at] ?? 0) - size / 2, size, size);
      }
    });
  }
  pen.globalAlpha = 1;
}
