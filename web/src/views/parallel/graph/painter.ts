// Paints around the spans: gridlines and steps behind them; labels, curves and the selection in front.

import { nameAt, numberAt } from "../../../api/columns.ts";
import type { Pen } from "../../../charts/pen.ts";
import { TIER_PLACES, TIERS } from "../../../layers/marey/marks.ts";
import type { NsWindow } from "../../../state/parallel.ts";
import { listNsTicks } from "./axis.ts";
import type { LaneCurve } from "./curves.ts";
import { computeWait, type Drawn } from "./drawn.ts";
import type { PlacedRows } from "./rows.ts";

export const AXIS_PX = 26;
const TICK_PX = 86;
/** Minimum widths of a span, in CSS pixels, for a number and for a name. */
const NUMBER_PX = 13;
const NAME_PX = 46;
const FONT = '"Inter Variable", Inter, system-ui, sans-serif';

/** CSS colors for a canvas. */
export interface PaintTokens {
  readonly line: string;
  readonly hairline: string;
  readonly text: string;
  readonly muted: string;
  readonly accent: string;
  readonly panel: string;
}

export interface PaintScene {
  readonly width: number;
  readonly height: number;
  readonly window: NsWindow;
  readonly originNs: number;
  readonly rows: PlacedRows;
  readonly scrollY: number;
  readonly tokens: PaintTokens;
}

export function xOf({ window, width }: Pick<PaintScene, "window" | "width">): (ns: number) => number {
  const scale = width / (window.toNs - window.fromNs);
  return (ns) => (ns - window.fromNs) * scale;
}

/** Gridlines with times, the ends of steps, and a line for each lane, visible where it is idle. */
export function paintBack(pen: Pen, scene: PaintScene, stepEndsNs: readonly number[]): void {
  const { width, height, window, rows, tokens } = scene;
  const x = xOf(scene);
  pen.clearRect(0, 0, width, height);
  pen.lineWidth = 1;
  pen.strokeStyle = tokens.hairline;
  pen.beginPath();
  for (let row = 0; row < rows.top.length; row += 1) {
    const y = Math.round((rows.top[row] ?? 0) + (rows.height[row] ?? 0) / 2 - scene.scrollY + AXIS_PX) + 0.5;
    if (y < AXIS_PX || y > height) continue;
    pen.moveTo(0, y);
    pen.lineTo(width, y);
  }
  pen.stroke();
  pen.strokeStyle = tokens.line;
  pen.fillStyle = tokens.muted;
  pen.font = `11px ${FONT}`;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  pen.beginPath();
  for (const { atNs, text } of listNsTicks(window.fromNs, window.toNs, scene.originNs, width / TICK_PX)) {
    const at = Math.round(x(atNs)) + 0.5;
    pen.moveTo(at, AXIS_PX);
    pen.lineTo(at, height);
    const textWidth = pen.measureText(text).width;
    const left = Math.min(width - textWidth - 2, Math.max(2, at - textWidth / 2));
    pen.fillText(text, left, AXIS_PX / 2);
  }
  pen.stroke();
  pen.strokeStyle = tokens.muted;
  pen.setLineDash([3, 4]);
  pen.beginPath();
  for (const endNs of stepEndsNs) {
    const at = Math.round(x(endNs)) + 0.5;
    if (at <= 1 || at >= width - 1) continue;
    pen.moveTo(at, AXIS_PX);
    pen.lineTo(at, height);
  }
  pen.stroke();
  pen.setLineDash([]);
}

/** Something highlighted, on a row. */
export interface PaintedMark {
  readonly row: number;
  readonly startNs: number;
  readonly endNs: number;
  readonly color: string;
}

export interface Front {
  readonly drawn: Drawn | null;
  /** Over dimmed spans; null: nothing is highlighted. */
  readonly marks: readonly PaintedMark[] | null;
  readonly selected: number | null;
  readonly curves: readonly LaneCurve[];
}

export function paintFront(pen: Pen, scene: PaintScene, front: Front): void {
  const { width, height } = scene;
  pen.clearRect(0, 0, width, height);
  pen.save();
  pen.beginPath();
  pen.rect(0, AXIS_PX, width, height - AXIS_PX);
  pen.clip();
  for (const curve of front.curves) paintCurve(pen, scene, curve);
  if (front.marks) paintMarks(pen, scene, front.marks);
  if (front.drawn) {
    pen.globalAlpha = front.marks ? DIMMED_OPACITY : 1;
    paintLabels(pen, scene, front.drawn);
    pen.globalAlpha = 1;
    if (front.selected !== null) paintSelected(pen, scene, front.drawn, front.selected);
  }
  pen.restore();
}

/** Of labels of spans that are not highlighted. */
const DIMMED_OPACITY = 0.45;
/** A highlighted instant is still visible. */
const MIN_MARK_PX = 3;

function paintMarks(pen: Pen, scene: PaintScene, marks: readonly PaintedMark[]): void {
  const x = xOf(scene);
  for (const { row, startNs, endNs, color } of marks) {
    if (endNs < scene.window.fromNs || startNs > scene.window.toNs) continue;
    const { top, height } = placeOfRow(scene, row);
    if (top + height < AXIS_PX || top > scene.height) continue;
    const left = Math.max(-4, x(startNs));
    const width = Math.max(MIN_MARK_PX, Math.min(scene.width + 4, x(endNs)) - left);
    pen.fillStyle = color;
    pen.strokeStyle = scene.tokens.text;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.roundRect(left, top - 1, width, height + 2, 2);
    pen.fill();
    // An outline around narrow marks would be all that is seen of them.
    if (width > 3 * MIN_MARK_PX) pen.stroke();
  }
}

/** Micro-batch numbers where they fit; names in wider spans. */
function paintLabels(pen: Pen, scene: PaintScene, { marey, kinds, tiers, colors }: Drawn): void {
  const { spans } = marey;
  const { rows, window, width } = scene;
  const x = xOf(scene);
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  for (let span = 0; span < spans.count; span += 1) {
    const end = spans.endNs[span] ?? 0;
    const start = (spans.startNs[span] ?? 0) + computeWait(spans, span);
    if (end < window.fromNs || start > window.toNs) continue;
    const [left, right] = [Math.max(0, x(start)), Math.min(width, x(end))];
    if (right - left < NUMBER_PX || kinds[span] === "annotation") continue;
    const row = spans.row[span] ?? 0;
    if (tiers[span] === TIERS.lower) continue;
    const [from = 0, to = 1] = TIER_PLACES[tiers[span] ?? 0] ?? [];
    const lane = (rows.height[row] ?? 0) * (to - from);
    if (lane < 10) continue;
    const y = (rows.top[row] ?? 0) + ((rows.height[row] ?? 0) * (from + to)) / 2 - scene.scrollY + AXIS_PX + 0.5;
    if (y < AXIS_PX || y > scene.height) continue;
    const size = Math.min(12, Math.max(9, lane - 5));
    const batch = numberAt(spans.microBatch, span);
    const text = batch === null ? nameOf(spans, span, right - left) : String(batch);
    if (text === null) continue;
    pen.font = `${batch === null ? 500 : 650} ${size}px ${FONT}`;
    const fitted = fitText(pen, text, right - left - 6);
    pen.fillStyle = textColorOn(colors[span] ?? 0);
    if (fitted) pen.fillText(fitted, (left + right) / 2, y);
  }
}

/** Light text on dark colors and dark on light, by luma (ITU-R BT.601). */
export function textColorOn(color: number): string {
  const brightness = 0.299 * (color >> 16) + 0.587 * ((color >> 8) & 255) + 0.114 * (color & 255);
  return brightness < 140 ? "#f6f8fa" : "#0b1015";
}

function nameOf(spans: Drawn["marey"]["spans"], span: number, widthPx: number): string | null {
  const count = spans.members[span] ?? 1;
  if (widthPx < NAME_PX) return null;
  return count > 1 ? `×${count}` : nameAt(spans.name, span);
}

const LETTER_PX = 5.6;

function fitText(pen: Pen, text: string, widthPx: number): string | null {
  const maxLetters = Math.floor(widthPx / LETTER_PX);
  if (text.length * LETTER_PX <= widthPx || pen.measureText(text).width <= widthPx) return text;
  return maxLetters >= 5 ? `${text.slice(0, maxLetters - 1)}…` : null;
}

function paintSelected(pen: Pen, scene: PaintScene, { marey }: Drawn, selected: number): void {
  const { spans } = marey;
  const x = xOf(scene);
  const row = spans.row[selected] ?? 0;
  const left = Math.max(-4, x(spans.startNs[selected] ?? 0)) - 1.5;
  const right = Math.min(scene.width + 4, x(spans.endNs[selected] ?? 0)) + 1.5;
  const top = (placeOfRow(scene, row).top ?? 0) - 2;
  pen.strokeStyle = scene.tokens.text;
  pen.lineWidth = 2;
  pen.beginPath();
  pen.roundRect(left, top, Math.max(4, right - left), placeOfRow(scene, row).height + 4, 4);
  pen.stroke();
}

function placeOfRow(scene: PaintScene, row: number): { readonly top: number; readonly height: number } {
  return {
    top: (scene.rows.top[row] ?? 0) - scene.scrollY + AXIS_PX,
    height: scene.rows.height[row] ?? 0,
  };
}

/** In the gap below its lane, from 0 to the maximum over all rows. */
function paintCurve(pen: Pen, scene: PaintScene, curve: LaneCurve): void {
  const { top, height } = placeOfRow(scene, curve.row);
  const gap = (scene.rows.pitch[curve.row] ?? 0) - height;
  const room = Math.min(22, gap * 0.42);
  if (room < 7) return;
  const x = xOf(scene);
  const bottom = top + height + room + 2;
  pen.strokeStyle = curve.color;
  pen.lineWidth = 1;
  pen.globalAlpha = 0.85;
  pen.beginPath();
  let isDown = false;
  curve.timesNs.forEach((time, at) => {
    const value = curve.values[at] ?? Number.NaN;
    if (Number.isNaN(value)) {
      isDown = false;
      return;
    }
    const y = bottom - (value / curve.most) * room;
    if (isDown) pen.lineTo(x(time), y);
    else pen.moveTo(x(time), y);
    isDown = true;
  });
  pen.stroke();
  if (curve.scale !== null) {
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.strokeStyle = scene.tokens.panel;
    pen.lineWidth = 3;
    pen.globalAlpha = 1;
    pen.strokeText(curve.scale, scene.width - 8, bottom - room);
    pen.fillStyle = curve.color;
    pen.fillText(curve.scale, scene.width - 8, bottom - room);
  }
  pen.globalAlpha = 1;
}
