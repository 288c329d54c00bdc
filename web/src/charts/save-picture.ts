// Saves the drawings of a panel as a file: canvases, SVG and bars with their labels, as PNG or SVG. Labels and bars of
// the page are included if they have `data-drawn-label` or `data-drawn-bar`.

import { downloadBlob, downloadText } from "../base/download.ts";
import { drawingOf } from "./canvas.tsx";
import { createMeasure, escapeSvg, SvgPen, writeSvgDocument } from "./pen.ts";

export async function savePng(panel: HTMLElement, name: string): Promise<void> {
  const { frame, style, title } = readPanel(panel);
  const trees = await Promise.all(
    findTrees(panel).map(async (tree) => ({ picture: await toPicture(tree), ...placeOf(tree, frame) })),
  );
  const ratio = Math.max(2, window.devicePixelRatio || 1);
  const sheet = document.createElement("canvas");
  sheet.width = Math.round(frame.width * ratio);
  sheet.height = Math.round(frame.height * ratio);
  const pen = sheet.getContext("2d");
  if (!pen) return;
  pen.scale(ratio, ratio);
  pen.fillStyle = style.backgroundColor;
  pen.fillRect(0, 0, frame.width, frame.height);
  pen.fillStyle = style.color;
  pen.font = `600 13px ${style.fontFamily}`;
  pen.fillText(title, 14, 22);
  for (const canvas of panel.querySelectorAll("canvas")) {
    const box = canvas.getBoundingClientRect();
    const drawing = drawingOf(canvas);
    pen.save();
    pen.translate(box.left - frame.left, box.top - frame.top);
    if (drawing) drawing.draw(pen, drawing.size);
    else pen.drawImage(canvas, 0, 0, box.width, box.height);
    pen.restore();
  }
  for (const { picture, x, y, width, height } of trees) pen.drawImage(picture, x, y, width, height);
  for (const { color, x, y, width, height } of readBars(panel, frame)) {
    pen.fillStyle = color;
    pen.fillRect(x, y, width, height);
  }
  pen.fillStyle = style.color;
  pen.font = `11px ${style.fontFamily}`;
  for (const { text, x, y } of readLabels(panel, frame)) pen.fillText(text, x, y);
  sheet.toBlob((blob) => blob && downloadBlob(name, blob));
}

export function saveSvg(panel: HTMLElement, name: string): void {
  downloadText(name, drawSvg(panel), "image/svg+xml");
}

/** The panel's drawings as one SVG. */
export function drawSvg(panel: HTMLElement): string {
  const { frame, style, title } = readPanel(panel);
  const measure = createMeasure();
  const parts = [...panel.querySelectorAll("canvas")].map((canvas, at) => {
    const box = canvas.getBoundingClientRect();
    const drawing = drawingOf(canvas);
    const pen = new SvgPen(measure, { name: `clip${at}`, x: box.left - frame.left, y: box.top - frame.top });
    if (drawing) drawing.draw(pen, drawing.size);
    return pen.finish();
  });
  const trees = findTrees(panel).map((tree) => {
    const { x, y } = placeOf(tree, frame);
    return `<g transform="translate(${x} ${y})">${writeTree(tree)}</g>`;
  });
  const bars = readBars(panel, frame).map(
    ({ color, x, y, width, height }) =>
      `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="1.5" fill="${color}"/>`,
  );
  const labels = readLabels(panel, frame).map(
    ({ text, x, y }) => `<text x="${x}" y="${y}" font-size="11">${escapeSvg(text)}</text>`,
  );
  const { width, height } = frame;
  const { backgroundColor: background, color, fontFamily } = style;
  return writeSvgDocument({ width, height, title, background, color, fontFamily }, [
    `<text x="14" y="22" font-size="13" font-weight="600">${escapeSvg(title)}</text>`,
    ...parts,
    ...trees,
    ...bars,
    ...labels,
  ]);
}

/** An SVG of the page as a file, its colors those of the theme. */
export function saveTree(tree: SVGElement, name: string): void {
  const background = `background-color:${getComputedStyle(document.body).backgroundColor}`;
  downloadText(name, writeTree(tree, background), "image/svg+xml");
}

/** What a style sheet says of SVG, and a file by itself would not know. */
const LOOKS = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-opacity",
  "stroke-linejoin",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
] as const;

function writeTree(tree: SVGElement, style = ""): string {
  const copy = tree.cloneNode(true) as SVGElement;
  const { width, height } = tree.getBoundingClientRect();
  const copies = copy.querySelectorAll<SVGElement>("*");
  tree.querySelectorAll("*").forEach((original, at) => {
    const looks = getComputedStyle(original);
    const inlineStyle = LOOKS.map((name) => `${name}:${looks.getPropertyValue(name).replaceAll('"', "'")}`).join(";");
    copies[at]?.removeAttribute("class");
    copies[at]?.setAttribute("style", inlineStyle);
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  copy.removeAttribute("class");
  copy.setAttribute("style", style);
  return new XMLSerializer().serializeToString(copy);
}

const LEAST_TREE_PX = 40;

/** Drawings that are SVG on the page already; the signs on buttons are none. */
function findTrees(panel: HTMLElement): readonly SVGElement[] {
  return [...panel.querySelectorAll<SVGElement>("svg")].filter(
    (tree) => tree.parentElement?.closest("svg, button") === null && tree.getBoundingClientRect().width > LEAST_TREE_PX,
  );
}

async function toPicture(tree: SVGElement): Promise<HTMLImageElement> {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(writeTree(tree))}`;
  await picture.decode();
  return picture;
}

function placeOf(element: Element, frame: DOMRect) {
  const { left, top, width, height } = element.getBoundingClientRect();
  return { x: left - frame.left, y: top - frame.top, width, height };
}

function readBars(panel: HTMLElement, frame: DOMRect) {
  return [...panel.querySelectorAll<HTMLElement>("[data-drawn-bar]")].map((bar) => ({
    ...placeOf(bar, frame),
    color: getComputedStyle(bar).backgroundColor,
  }));
}

function readPanel(panel: HTMLElement) {
  return {
    frame: panel.getBoundingClientRect(),
    style: getComputedStyle(panel),
    title: panel.getAttribute("aria-label") ?? "",
  };
}

function readLabels(panel: HTMLElement, frame: DOMRect) {
  return [...panel.querySelectorAll<HTMLElement>("[data-drawn-label]")].map((label) => {
    const box = label.getBoundingClientRect();
    return { text: label.textContent ?? "", x: box.left - frame.left, y: box.bottom - frame.top - 3 };
  });
}
