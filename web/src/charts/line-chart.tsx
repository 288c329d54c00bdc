// Lines of one metric over time, with a cursor and a range selection. Both are passed in, so that charts below one
// another are synchronized. Gaps in time stay gaps.

import { type KeyboardEvent, useCallback, useRef } from "react";
import { classNames } from "../base/class-names.ts";
import { Canvas, type Ink, useInk, useSize } from "./canvas.tsx";
import chart from "./chart.module.css";
import type { Pen } from "./pen.ts";
import { splitRuns } from "./sparkline.tsx";
import { useDrawing } from "./use-drawing.ts";

export interface ChartLine {
  readonly key: string;
  readonly color: string;
  readonly timesMs: Float64Array;
  readonly values: Float64Array;
  readonly width: number;
  readonly alpha: number;
  readonly isDashed: boolean;
}

/** Between two lines of the same times. */
export interface ChartBand {
  readonly key: string;
  readonly color: string;
  readonly timesMs: Float64Array;
  readonly low: Float64Array;
  readonly high: Float64Array;
}

export interface ChartSpan {
  readonly fromMs: number;
  readonly toMs: number;
  readonly color: string;
  readonly alpha: number;
}

export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
}

interface LineChartProps {
  readonly label: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly low: number;
  readonly high: number;
  readonly lines: readonly ChartLine[];
  readonly bands: readonly ChartBand[];
  readonly spans: readonly ChartSpan[];
  readonly cursorMs: number | null;
  /** What is being drawn; null: nothing. */
  readonly drawn: TimeRange | null;
  onCursor(timeMs: number | null): void;
  /** `isDone`: the reader let go. */
  onDraw(range: TimeRange | null, isDone: boolean): void;
  /** Escape where nothing is drawn, or a double click: back to all of the time. */
  onClear?: (() => void) | undefined;
}

const KEY_STEPS = 60;

export function LineChart(props: LineChartProps) {
  const { label, startMs, endMs, low, high, lines, bands, spans, cursorMs, drawn, onCursor, onDraw, onClear } = props;
  const place = useRef<HTMLDivElement>(null);
  const size = useSize(place);
  const ink = useInk();
  const draw = useCallback(
    (pen: Pen, { width, height }: { width: number; height: number }) => {
      const x = (timeMs: number) => ((timeMs - startMs) / Math.max(1, endMs - startMs)) * width;
      const y = (value: number) => height - 4 - ((value - low) / (high - low || 1)) * (height - 8);
      paintSpans(pen, spans, x, height, ink);
      for (const band of bands) paintBand(pen, band, x, y, ink);
      for (const line of lines) paintLine(pen, line, x, y, ink);
    },
    [startMs, endMs, low, high, lines, bands, spans, ink],
  );
  const toTime = (ratio: number) => startMs + ratio * (endMs - startMs);
  const drawing = useDrawing({
    onPoint: (at) => onCursor(at === null ? null : toTime(at)),
    onDraw: (from, to) => onDraw(toRange(toTime(from), toTime(to)), false),
    onDone: (from, to, isDrag) => onDraw(isDrag ? toRange(toTime(from), toTime(to)) : null, isDrag),
    onCancel: () => onDraw(null, false),
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Enter" && drawn) onDraw(drawn, true);
    else if (event.key === "Escape" && drawn === null) onClear?.();
    else if (event.key === "Escape") onDraw(null, false);
    else if (move !== undefined) {
      const step = (endMs - startMs) / KEY_STEPS;
      const fromMs = cursorMs ?? (move > 0 ? startMs - step : endMs + step);
      const next = Math.min(endMs, Math.max(startMs, fromMs + move * step));
      onCursor(next);
      if (event.shiftKey) onDraw(extend(drawn, fromMs, next), false);
    } else return;
    event.preventDefault();
  };
  const percent = (timeMs: number) => `${((timeMs - startMs) / Math.max(1, endMs - startMs)) * 100}%`;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be drawn in
    <div
      ref={place}
      role="group"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keys point and draw here as the mouse does
      tabIndex={0}
      className={classNames(chart.drawable, chart.framed)}
      {...drawing}
      onBlur={() => onCursor(null)}
      onDoubleClick={onClear}
      onKeyDown={onKeyDown}
    >
      {size.width > 0 && <Canvas size={size} draw={draw} />}
      {drawn && (
        <i
          className={chart.range}
          data-filled={true}
          style={{ left: percent(drawn.fromMs), right: `calc(100% - ${percent(drawn.toMs)})` }}
        />
      )}
      {cursorMs !== null && <i className={chart.cursor} style={{ left: percent(cursorMs) }} />}
    </div>
  );
}

function toRange(a: number, b: number): TimeRange {
  return { fromMs: Math.min(a, b), toMs: Math.max(a, b) };
}

function extend(drawn: TimeRange | null, heldMs: number, nextMs: number): TimeRange {
  if (drawn === null) return toRange(heldMs, nextMs);
  const isAtStart = Math.abs(heldMs - drawn.fromMs) < Math.abs(heldMs - drawn.toMs);
  return isAtStart ? toRange(nextMs, drawn.toMs) : toRange(drawn.fromMs, nextMs);
}

type Scale = (value: number) => number;

function paintSpans(pen: Pen, spans: readonly ChartSpan[], x: Scale, height: number, ink: Ink): void {
  for (const { fromMs, toMs, color, alpha } of spans) {
    pen.globalAlpha = alpha;
    pen.fillStyle = ink(color);
    pen.fillRect(x(fromMs), 0, Math.max(1, x(toMs) - x(fromMs)), height);
  }
  pen.globalAlpha = 1;
}

function paintBand(pen: Pen, band: ChartBand, x: Scale, y: Scale, ink: Ink): void {
  const { timesMs, low, high } = band;
  pen.fillStyle = ink(band.color);
  pen.globalAlpha = 0.18;
  for (const [from, to] of splitRuns(timesMs)) {
    pen.beginPath();
    for (let at = from; at < to; at += 1) pen.lineTo(x(timesMs[at] ?? 0), y(high[at] ?? 0));
    for (let at = to - 1; at >= from; at -= 1) pen.lineTo(x(timesMs[at] ?? 0), y(low[at] ?? 0));
    pen.fill();
  }
  pen.globalAlpha = 1;
}

function paintLine(pen: Pen, line: ChartLine, x: Scale, y: Scale, ink: Ink): void {
  const { timesMs, values } = line;
  pen.strokeStyle = ink(line.color);
  pen.globalAlpha = line.alpha;
  pen.lineWidth = line.width;
  pen.lineJoin = "round";
  pen.setLineDash(line.isDashed ? [4, 3] : []);
  pen.beginPath();
  for (const [from, to] of splitRuns(timesMs)) {
    let isDown = false;
    for (let at = from; at < to; at += 1) {
      const value = values[at] ?? Number.NaN;
      if (Number.isNaN(value)) {
        isDown = false;
        continue;
      }
      if (isDown) pen.lineTo(x(timesMs[at] ?? 0), y(value));
      else pen.moveTo(x(timesMs[at] ?? 0), y(value));
      isDown = true;
    }
    // A single sample is a dot, not nothing.
    if (to - from === 1) pen.lineTo(x(timesMs[from] ?? 0) + 1.5, y(values[from] ?? 0));
  }
  pen.stroke();
  pen.setLineDash([]);
  pen.globalAlpha = 1;
}
