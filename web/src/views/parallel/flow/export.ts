// Exports the whole execution flow: SVG with the same nodes, edges and marks, or PNG of that SVG.

import type { FlowAnswer, FlowEdge, FlowNode } from "../../../api/generated.ts";
import { downloadBlob, downloadText } from "../../../base/download.ts";
import type { Ink } from "../../../charts/canvas.tsx";
import { escapeSvg, writeSvgDocument } from "../../../charts/pen.ts";
import { cellsAt, edgePath, fitLabel, MAX_SHARDS, placeShards } from "./geometry.ts";
import { type Box, CELL, type FlowLayout, NODE_HEIGHT } from "./layout.ts";
import { isShown, MARK_COLORS, MARK_PATHS, MARK_TITLES, MARKS, splitColor, toneOf } from "./looks.ts";

export interface FlowFile {
  readonly flow: FlowAnswer;
  readonly layout: FlowLayout;
  readonly title: string;
  readonly selected: number | null;
  readonly shown: ReadonlySet<string>;
  readonly ink: Ink;
}

const [LEFT_PX, HEAD_PX, FOOT_PX] = [96, 36, 40];
/** Limits of canvases in browsers. */
const [MAX_WIDTH_PX, MAX_PIXELS] = [16_000, 64_000_000];

export function saveFlowSvg(file: FlowFile): void {
  downloadText(`${fileName(file.title)}.svg`, writeFlowSvg(file), "image/svg+xml");
}

export async function saveFlowPng(file: FlowFile): Promise<void> {
  const { width, height } = sizeOf(file.layout);
  const scale = Math.min(2, MAX_WIDTH_PX / width, Math.sqrt(MAX_PIXELS / (width * height)));
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(writeFlowSvg(file))}`;
  await picture.decode();
  const sheet = document.createElement("canvas");
  sheet.width = Math.round(width * scale);
  sheet.height = Math.round(height * scale);
  sheet.getContext("2d")?.drawImage(picture, 0, 0, sheet.width, sheet.height);
  sheet.toBlob((blob) => blob && downloadBlob(`${fileName(file.title)}.png`, blob));
}

function fileName(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}

function sizeOf({ size }: FlowLayout) {
  return { width: Math.ceil(size.width + LEFT_PX), height: Math.ceil(size.height + HEAD_PX + FOOT_PX) };
}

export function writeFlowSvg(file: FlowFile): string {
  const { flow, layout, ink } = file;
  const { width, height } = sizeOf(layout);
  const isNear = ({ source, target }: FlowEdge) => source === file.selected || target === file.selected;
  const edges = flow.edges.filter((edge) => isShown(edge, file.shown) || isNear(edge));
  const places = placeShards(edges);
  return writeSvgDocument(
    { width, height, title: file.title, background: ink("var(--panel)"), color: ink("var(--text)") },
    [
      `<text x="14" y="23" font-size="13" font-weight="600">${escapeSvg(file.title)}</text>`,
      ...writeStages(file),
      `<g transform="translate(${LEFT_PX} ${HEAD_PX})">`,
      ...layout.blocks.map((box) => writeBlock(box, ink)),
      ...edges.map((edge) => writeEdge(edge, file, places.get(edge) ?? 0)),
      ...flow.nodes.map((node, at) => writeNode(node, at, file)),
      "</g>",
      ...writeLegend(file, height - FOOT_PX / 2),
    ],
  );
}

function writeStages({ flow, layout }: FlowFile): readonly string[] {
  return flow.stages.map(({ stage }, at) => {
    const box = layout.stages[at];
    const y = HEAD_PX + (box ? box.y + Math.min(box.height, 60) / 2 : 0);
    return `<text x="14" y="${y}" font-weight="600">${stage === null ? "All ranks" : `Stage ${stage}`}</text>`;
  });
}

function writeBlock({ x, y, width, height }: Box, ink: Ink): string {
  return `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="8" fill="none" stroke="${ink("var(--faint)")}" stroke-dasharray="5 4"/>`;
}

function writeEdge(edge: FlowEdge, { layout, ink }: FlowFile, place: number): string {
  const isMessage = edge.edge_class === "send_receive";
  const color = ink(isMessage ? MARK_COLORS.pp : "var(--faint)");
  const path = `<path d="${edgePath(edge, layout)}" fill="none" stroke="${color}" stroke-width="${isMessage ? 2 : 1.2}"/>`;
  if (edge.shard === null || place >= MAX_SHARDS) return path;
  const [left, top] = cellsAt(edge, layout, place);
  const cells = edge.shard.map(
    (parts, dimension) =>
      `<rect x="${left + dimension * (CELL + 1)}" y="${top}" width="${CELL}" height="${CELL}" fill="${ink(splitColor(parts))}" stroke="${ink("var(--muted)")}" stroke-width="0.8"/>`,
  );
  return `${path}<g><title>split ${edge.shard.join(" × ")}</title>${cells.join("")}</g>`;
}

function writeNode(node: FlowNode, at: number, { layout, ink, selected }: FlowFile): string {
  const width = layout.width[at] ?? 0;
  const { label, suffix } = fitLabel(node, width);
  const isNamespace = node.kind === "namespace";
  const fill = ink(isNamespace ? "var(--raised)" : "var(--panel)");
  const stroke = ink(at === selected ? "var(--accent)" : isNamespace ? "var(--faint)" : "var(--line)");
  const box = (by: number) =>
    `<rect x="${by}" y="${-by}" width="${width}" height="${NODE_HEIGHT}" rx="5" fill="${fill}" stroke="${stroke}" stroke-width="${at === selected ? 2 : 1.2}"/>`;
  const marks = node.marks.map(
    ({ mark, count }, place) =>
      `<path transform="translate(${width - 8 - place * 13} ${NODE_HEIGHT})" d="${MARK_PATHS[mark]}" fill="${ink(MARK_COLORS[mark])}"><title>${MARK_TITLES[mark]}${count > 1 ? ` ×${count}` : ""}</title></path>`,
  );
  return [
    `<g transform="translate(${layout.x[at] ?? 0} ${layout.y[at] ?? 0})"><title>${escapeSvg(`${node.namespace} ${node.label}`)}</title>`,
    ...(node.count > 1 ? [box(6), box(3)] : []),
    box(0),
    `<rect x="1" y="4" width="3" height="${NODE_HEIGHT - 8}" rx="1.5" fill="${ink(toneOf(node))}"/>`,
    `<text x="9" y="${NODE_HEIGHT / 2 + 4}">${escapeSvg(label)}`,
    suffix && `<tspan fill="${ink("var(--accent)")}" font-weight="600">${suffix}</tspan>`,
    `</text>${marks.join("")}</g>`,
  ].join("");
}

function writeLegend({ flow, ink }: FlowFile, y: number): readonly string[] {
  const usedMarks = new Set(flow.nodes.flatMap(({ marks }) => marks.map(({ mark }) => mark)));
  let x = LEFT_PX;
  return MARKS.filter((mark) => usedMarks.has(mark)).map((mark) => {
    const key = `<path transform="translate(${x} ${y})" d="${MARK_PATHS[mark]}" fill="${ink(MARK_COLORS[mark])}"/><text x="${x + 10}" y="${y + 4}">${MARK_TITLES[mark]}</text>`;
    x += 34 + MARK_TITLES[mark].length * 6;
    return key;
  });
}
