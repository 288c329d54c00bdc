// The graph as a file: PNG of what is on the canvases, SVG of the same spans, both with names, title and legend.

import { numberAt } from "../../../api/columns.ts";
import { downloadBlob, downloadText } from "../../../base/download.ts";
import { SPAN_STYLES, TIER_PLACES, TIERS } from "../../../layers/marey/marks.ts";
import type { NsWindow } from "../../../state/parallel.ts";
import { listNsTicks } from "./axis.ts";
import { waitOf } from "./drawn.ts";
import { KIND_COLORS, KIND_TITLES } from "./kinds.ts";
import { listKinds } from "./legend.tsx";
import { AXIS_PX, inkOn, type PaintTokens, xOf } from "./painter.ts";
import { rankToName } from "./rows.ts";
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
const FONT = "Inter, system-ui, sans-serif";

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
  // What a WebGL canvas shows is gone after its frame: it is drawn again and copied in the same task.
  file.stage.drawNow();
  for (const canvas of canvases) pen.drawImage(canvas, LABEL_PX, HEAD_PX, box.width, box.height);
  pen.textBaseline = "middle";
  for (const { text, x, y, weight, color } of listTexts(file, box.height)) {
    pen.fillStyle = color;
    pen.font = `${weight} 12px ${FONT}`;
    pen.fillText(text, x, y);
  }
  for (const { color, x, y } of listKeys(file, box.height)) {
    pen.fillStyle = color;
    pen.fillRect(x, y, 10, 10);
  }
  sheet.toBlob((blob) => blob && downloadBlob(`${fileName(file.title)}.png`, blob));
}

export function saveSvg(file: GraphFile): void {
  const box = file.place.querySelector("canvas")?.getBoundingClientRect();
  if (box) downloadText(`${fileName(file.title)}.svg`, writeSvg(file, box.width, box.height), "image/svg+xml");
}

interface Text {
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly weight: number;
  readonly color: string;
}

/** Title, names of rows, and what the legend says. */
function listTexts(file: GraphFile, height: number): readonly Text[] {
  const { stage, tokens } = file;
  const rows = stage.drawn?.marey.rows ?? [];
  return [
    { text: file.title, x: 14, y: HEAD_PX / 2, weight: 600, color: tokens.text },
    ...rows.map((row, at) => ({
      text: [rankToName(rows, at), row.label].filter(Boolean).join(" "),
      x: 12 + row.depth * 12,
      y: HEAD_PX + AXIS_PX + (stage.rows.top[at] ?? 0) + (stage.rows.height[at] ?? 0) / 2 - stage.scrollY,
      weight: 500,
      color: tokens.text,
    })),
    ...listKeys(file, height).map(({ title, x, y }) => ({
      text: title,
      x: x + 16,
      y: y + 5,
      weight: 400,
      color: tokens.muted,
    })),
  ];
}

function listKeys({ stage, ink }: GraphFile, height: number) {
  let x = LABEL_PX;
  return (stage.drawn ? listKinds(stage.drawn) : []).map((kind) => {
    const key = { title: KIND_TITLES[kind], color: ink(KIND_COLORS[kind]), x, y: HEAD_PX + height + 12 };
    x += 34 + KIND_TITLES[kind].length * 7;
    return key;
  });
}

const short = (value: number) => String(Math.round(value * 100) / 100);
const hex = (color: number) => `#${color.toString(16).padStart(6, "0")}`;
const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escapeXml = (text: string) => text.replace(/[&<>"]/g, (found) => ENTITIES[found] ?? found);

export function writeSvg(file: GraphFile, width: number, height: number): string {
  const { stage, tokens } = file;
  const [wide, high] = [width + LABEL_PX, height + HEAD_PX + FOOT_PX];
  const text = ({ text: words, x, y, weight, color }: Text, anchor = "start") =>
    `<text x="${short(x)}" y="${short(y)}" font-size="12" font-weight="${weight}" fill="${color}" text-anchor="${anchor}" dominant-baseline="central">${escapeXml(words)}</text>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.round(wide)}" height="${Math.round(high)}" font-family="${FONT}">`,
    `<title>${escapeXml(file.title)}</title><rect width="100%" height="100%" fill="${tokens.panel}"/>`,
    ...listTexts(file, height).map((each) => text(each)),
    ...listKeys(file, height).map(
      ({ color, x, y }) => `<rect x="${x}" y="${y}" width="10" height="10" rx="2" fill="${color}"/>`,
    ),
    `<svg x="${LABEL_PX}" y="${HEAD_PX}" width="${short(width)}" height="${short(height)}">`,
    ...writeGrid(stage.window, file, width, height, text),
    ...writeBands(stage, width),
    ...writeSpans(stage, width),
    ...writeNumbers(stage, width, text),
    "</svg></svg>\n",
  ].join("\n");
}

type WriteText = (text: Text, anchor?: string) => string;

function writeGrid(window: NsWindow, { originNs, tokens }: GraphFile, width: number, height: number, text: WriteText) {
  const x = xOf({ window, width });
  return listNsTicks(window.fromNs, window.toNs, originNs, width / 86).map(({ atNs, text: words }) =>
    [
      `<path d="M${short(x(atNs))} ${AXIS_PX}V${short(height)}" stroke="${tokens.line}"/>`,
      text({ text: words, x: x(atNs), y: AXIS_PX / 2, weight: 400, color: tokens.muted }, "middle"),
    ].join(""),
  );
}

function writeBands({ drawn, rows, window, scrollY }: GraphStage, width: number): readonly string[] {
  if (!drawn) return [];
  const { bands, baseNs } = drawn;
  const x = xOf({ window, width });
  return Array.from({ length: bands.count }, (_, band) => {
    const at = (times: Float32Array) => x((times[band] ?? 0) + baseNs);
    const [from, to] = [bands.fromRow[band] ?? 0, bands.toRow[band] ?? 0];
    const isDown = (rows.top[from] ?? 0) < (rows.top[to] ?? 0);
    const edge = (row: number, isUpper: boolean) =>
      (rows.top[row] ?? 0) + (isUpper ? (rows.height[row] ?? 0) : 0) + AXIS_PX - scrollY;
    const [a, b] = [edge(from, isDown), edge(to, !isDown)];
    if (Math.max(at(bands.fromEndNs), at(bands.toEndNs)) < 0) return "";
    if (Math.min(at(bands.fromStartNs), at(bands.toStartNs)) > width) return "";
    const points = [
      [at(bands.fromStartNs), a],
      [at(bands.fromEndNs), a],
      [at(bands.toEndNs), b],
      [at(bands.toStartNs), b],
    ].map(([px = 0, py = 0]) => `${short(px)},${short(py)}`);
    return `<polygon points="${points.join(" ")}" fill="${hex(bands.color[band] ?? 0)}" opacity="${short(bands.opacity[band] ?? 0)}"/>`;
  }).filter(Boolean);
}

function writeSpans({ drawn, rows, window, scrollY }: GraphStage, width: number): readonly string[] {
  if (!drawn) return [];
  const { spans, baseNs } = drawn;
  const x = xOf({ window, width });
  const parts: string[] = [];
  for (let mark = 0; mark < spans.count; mark += 1) {
    const left = Math.max(-4, x((spans.startNs[mark] ?? 0) + baseNs));
    const right = Math.min(width + 4, x((spans.endNs[mark] ?? 0) + baseNs));
    if (right < 0 || left > width) continue;
    const row = spans.row[mark] ?? 0;
    const whole = rows.height[row] ?? 0;
    const [from = 0, to = 1] = TIER_PLACES[spans.tier[mark] ?? 0] ?? [];
    const lane = whole * (to - from);
    const high = spans.style[mark] === SPAN_STYLES.thin ? Math.max(2, lane * 0.2) : lane;
    const start = (rows.top[row] ?? 0) + whole * from;
    const top = start + AXIS_PX - scrollY + (lane - high) / 2;
    const color = hex(spans.color[mark] ?? 0);
    const paint = spans.style[mark] === SPAN_STYLES.outline ? `fill="none" stroke="${color}"` : `fill="${color}"`;
    parts.push(
      `<rect x="${short(left)}" y="${short(top)}" width="${short(Math.max(1, right - left - 0.6))}" height="${short(high)}" rx="2" ${paint} opacity="${short(spans.opacity[mark] ?? 1)}"/>`,
    );
  }
  return parts;
}

function writeNumbers({ drawn, rows, window, scrollY }: GraphStage, width: number, text: WriteText) {
  if (!drawn) return [];
  const { spans } = drawn.marey;
  const x = xOf({ window, width });
  return Array.from({ length: spans.count }, (_, span) => {
    const start = (spans.startNs[span] ?? 0) + waitOf(spans, span);
    const [left, right] = [x(start), x(spans.endNs[span] ?? 0)];
    const batch = numberAt(spans.microBatch, span);
    if (batch === null || drawn.tiers[span] === TIERS.lower || right - left < 14 || right < 0 || left > width)
      return "";
    const row = spans.row[span] ?? 0;
    const [from = 0, to = 1] = TIER_PLACES[drawn.tiers[span] ?? 0] ?? [];
    const y = (rows.top[row] ?? 0) + ((rows.height[row] ?? 0) * (from + to)) / 2 + AXIS_PX - scrollY;
    return text(
      { text: String(batch), x: (left + right) / 2, y, weight: 650, color: inkOn(drawn.colors[span] ?? 0) },
      "middle",
    );
  }).filter(Boolean);
}
