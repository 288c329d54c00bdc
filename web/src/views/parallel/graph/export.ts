// Exports the graph: PNG of the canvases, SVG of the same spans, both with row labels, title and legend.

import { downloadBlob, downloadText } from "../../../base/download.ts";
import { createMeasure, FILE_FONT, type Pen, SvgPen, writeSvgDocument } from "../../../charts/pen.ts";
import { SPAN_STYLES, TIER_PLACES } from "../../../layers/marey/marks.ts";
import { KIND_COLORS, KIND_TITLES } from "./kinds.ts";
import { listKinds } from "./legend.tsx";
import { AXIS_PX, type PaintTokens, xOf } from "./painter.ts";
import { findRankLabel } from "./rows.ts";
import type { GraphStage } from "./stage.ts";

export interface GraphFile {
  readonly stage: GraphStage;
  readonly title: string;
  readonly originNs: number;
  readonly tokens: PaintTokens;
  readonly ink: (css: string) => string;
  readonly place: HTMLElement;
}

const HEAD_PX = 40;
const FOOT_PX = 34;
const LABEL_PX = 118;

function fileName(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}

export function savePng(file: GraphFile): void {
  const canvases = [...file.place.querySelectorAll("canvas")];
  const box = canvases[0]?.getBoundingClientRect();
  const sheet = document.createElement("canvas");
  const pen = sheet.getContext("2d");
  if (!box || !pen) return;
  const ratio = window.devicePixelRatio || 1;
  sheet.width = Math.round((box.width + LABEL_PX) * ratio);
  sheet.height = Math.round((box.height + HEAD_PX + FOOT_PX) * ratio);
  pen.scale(ratio, ratio);
  pen.fillStyle = file.tokens.panel;
  pen.fillRect(0, 0, sheet.width, sheet.height);
  // A WebGL canvas is cleared after its frame: it is drawn again and copied in the same task.
  file.stage.drawNow();
  for (const canvas of canvases) pen.drawImage(canvas, LABEL_PX, HEAD_PX, box.width, box.height);
  paintFrame(pen, file, box.height);
  sheet.toBlob((blob) => blob && downloadBlob(`${fileName(file.title)}.png`, blob));
}

export function saveSvg(file: GraphFile): void {
  const box = file.place.querySelector("canvas")?.getBoundingClientRect();
  if (box) downloadText(`${fileName(file.title)}.svg`, writeSvg(file, box.width, box.height), "image/svg+xml");
}

/** Title, row labels and legend. */
function paintFrame(pen: Pen, file: GraphFile, height: number): void {
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  for (const { text, x, y, weight, color } of listTexts(file, height)) {
    pen.fillStyle = color;
    pen.font = `${weight} 12px ${FILE_FONT}`;
    pen.fillText(text, x, y);
  }
  for (const { color, x, y } of listLegendEntries(file, height)) {
    pen.fillStyle = color;
    pen.fillRect(x, y, 10, 10);
  }
}

interface Text {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly weight: number;
  readonly color: string;
}

/** Texts of the title, the row labels and the legend. */
function listTexts(file: GraphFile, height: number): readonly Text[] {
  const { stage, tokens } = file;
  const rows = stage.drawn?.marey.rows ?? [];
  return [
    { text: file.title, x: 14, y: HEAD_PX / 2, weight: 600, color: tokens.text },
    ...rows.map((row, at) => ({
      text: [findRankLabel(rows, at), row.label].filter(Boolean).join(" "),
      x: 12 + row.depth * 12,
      y: HEAD_PX + AXIS_PX + (stage.rows.top[at] ?? 0) + (stage.rows.height[at] ?? 0) / 2 - stage.scrollY,
      weight: 500,
      color: tokens.text,
    })),
    ...listLegendEntries(file, height).map(({ title, x, y }) => ({
      text: title,
      x: x + 16,
      y: y + 5,
      weight: 400,
      color: tokens.muted,
    })),
  ];
}

function listLegendEntries({ stage, ink }: GraphFile, height: number) {
  let x = LABEL_PX;
  return (stage.drawn ? listKinds(stage.drawn) : []).map((kind) => {
    const key = { title: KIND_TITLES[kind], color: ink(KIND_COLORS[kind]), x, y: HEAD_PX + height + 12 };
    x += 34 + KIND_TITLES[kind].length * 7;
    return key;
  });
}

export function writeSvg(file: GraphFile, width: number, height: number): string {
  const { stage, tokens } = file;
  const pen = new SvgPen(createMeasure());
  paintFrame(pen, file, height);
  pen.save();
  pen.translate(LABEL_PX, HEAD_PX);
  pen.beginPath();
  pen.rect(0, 0, width, height);
  pen.clip();
  stage.paintBack(pen);
  paintBands(pen, stage, width);
  paintSpans(pen, stage, width);
  stage.paintFront(pen);
  pen.restore();
  return writeSvgDocument(
    {
      width: width + LABEL_PX,
      height: height + HEAD_PX + FOOT_PX,
      title: file.title,
      background: tokens.panel,
      color: tokens.text,
    },
    [pen.finish()],
  );
}

const hex = (color: number) => `#${color.toString(16).padStart(6, "0")}`;

function paintBands(pen: Pen, { drawn, rows, window, scrollY }: GraphStage, width: number): void {
  if (!drawn) return;
  const { bands, baseNs } = drawn;
  const x = xOf({ window, width });
  for (let band = 0; band < bands.count; band += 1) {
    const at = (times: Float32Array) => x((times[band] ?? 0) + baseNs);
    if (Math.max(at(bands.fromEndNs), at(bands.toEndNs)) < 0) continue;
    if (Math.min(at(bands.fromStartNs), at(bands.toStartNs)) > width) continue;
    const [from, to] = [bands.fromRow[band] ?? 0, bands.toRow[band] ?? 0];
    const isDown = (rows.top[from] ?? 0) < (rows.top[to] ?? 0);
    const edge = (row: number, isUpper: boolean) =>
      (rows.top[row] ?? 0) + (isUpper ? (rows.height[row] ?? 0) : 0) + AXIS_PX - scrollY;
    const [a, b] = [edge(from, isDown), edge(to, !isDown)];
    pen.fillStyle = hex(bands.color[band] ?? 0);
    pen.globalAlpha = bands.opacity[band] ?? 0;
    pen.beginPath();
    pen.moveTo(at(bands.fromStartNs), a);
    pen.lineTo(at(bands.fromEndNs), a);
    pen.lineTo(at(bands.toEndNs), b);
    pen.lineTo(at(bands.toStartNs), b);
    pen.closePath();
    pen.fill();
  }
  pen.globalAlpha = 1;
}

function paintSpans(pen: Pen, { drawn, rows, window, scrollY }: GraphStage, width: number): void {
  if (!drawn) return;
  const { spans, baseNs } = drawn;
  const x = xOf({ window, width });
  pen.lineWidth = 1;
  for (let mark = 0; mark < spans.count; mark += 1) {
    const left = Math.max(-4, x((spans.startNs[mark] ?? 0) + baseNs));
    const right = Math.min(width + 4, x((spans.endNs[mark] ?? 0) + baseNs));
    if (right < 0 || left > width) continue;
    const row = spans.row[mark] ?? 0;
    const rowHeight = rows.height[row] ?? 0;
    const [from = 0, to = 1] = TIER_PLACES[spans.tier[mark] ?? 0] ?? [];
    const lane = rowHeight * (to - from);
    const markHeight = spans.style[mark] === SPAN_STYLES.thin ? Math.max(2, lane * 0.2) : lane;
    const top = (rows.top[row] ?? 0) + rowHeight * from + AXIS_PX - scrollY + (lane - markHeight) / 2;
    const color = hex(spans.color[mark] ?? 0);
    pen.globalAlpha = spans.opacity[mark] ?? 1;
    pen.beginPath();
    pen.roundRect(left, top, Math.max(1, right - left - 0.6), markHeight, 2);
    if (spans.style[mark] === SPAN_STYLES.outline) {
      pen.strokeStyle = color;
      pen.stroke();
    } else {
      pen.fillStyle = color;
      pen.fill();
    }
  }
  pen.globalAlpha = 1;
}
