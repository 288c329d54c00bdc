// Saves the drawings of a panel as a figure, PNG or SVG: canvases, SVG and bars with their labels, below a title and a
// legend, above a caption. Text and bars of the page are included if they have `data-drawn-label` or `data-drawn-bar`.

import { downloadBlob, downloadText } from "../base/download.ts";
import { formatExact } from "../base/time.ts";
import { createInk, drawingOf } from "./canvas.tsx";
import { createMeasure, escapeSvg, FILE_FONT, type Measure, SvgPen, short, writeSvgDocument } from "./pen.ts";

export interface LegendEntry {
  readonly label: string;
  readonly color: string;
}

/** What a figure says around its drawings. */
export interface FigureText {
  /** By default the label of the panel. */
  readonly title?: string;
  readonly legend?: readonly LegendEntry[];
  /** What is drawn, of what, and with which filter; the date of the figure follows. */
  readonly caption?: string;
}

export async function savePng(panel: HTMLElement, name: string, text: FigureText = {}): Promise<void> {
  const figure = drawFigure(panel, text);
  const picture = await toPicture(figure.svg);
  const ratio = Math.max(2, window.devicePixelRatio || 1);
  const sheet = document.createElement("canvas");
  sheet.width = Math.round(figure.width * ratio);
  sheet.height = Math.round(figure.height * ratio);
  sheet.getContext("2d")?.drawImage(picture, 0, 0, sheet.width, sheet.height);
  sheet.toBlob((blob) => blob && downloadBlob(name, blob));
}

export function saveSvg(panel: HTMLElement, name: string, text: FigureText = {}): void {
  downloadText(name, drawSvg(panel, text), "image/svg+xml");
}

/** The panel's drawings as one SVG. */
export function drawSvg(panel: HTMLElement, text: FigureText = {}): string {
  return drawFigure(panel, text).svg;
}

const SIDE_PX = 14;
const TITLE_PX = 34;
const LINE_PX = 18;
const SWATCH_PX = 10;
const GAP_PX = 18;
const FONT = `11px ${FILE_FONT}`;

function drawFigure(panel: HTMLElement, text: FigureText) {
  const { color, fontFamily } = getComputedStyle(panel);
  const background = findBackground(panel);
  const title = text.title ?? panel.getAttribute("aria-label") ?? "";
  const measure = createMeasure();
  const body = readBody(panel);
  const width = Math.round(Math.max(body.width, 320));
  const legend = layOutLegend(text.legend ?? [], width, measure);
  // Drawings that share their panel with a heading leave room for the title; others begin below it.
  const top = (body.hasHeading ? 0 : TITLE_PX) + legend.height;
  const caption = wrapText([text.caption, `${formatExact(Date.now())}, ClusterScape`].filter(Boolean).join(" · "), {
    width: width - 2 * SIDE_PX,
    measure,
  });
  const captionTop = top + body.height + LINE_PX;
  const height = Math.round(captionTop + caption.length * LINE_PX);
  const svg = writeSvgDocument({ width, height, title, background, color, fontFamily }, [
    `<text x="${SIDE_PX}" y="22" font-size="13" font-weight="600">${escapeSvg(title)}</text>`,
    `<g transform="translate(0 ${body.hasHeading ? 0 : TITLE_PX})">${legend.svg}</g>`,
    `<g transform="translate(0 ${top})">`,
    ...drawBody(body, measure),
    "</g>",
    ...caption.map(
      (line, at) =>
        `<text x="${SIDE_PX}" y="${captionTop + at * LINE_PX}" fill-opacity="0.7">${escapeSvg(line)}</text>`,
    ),
  ]);
  return { svg, width, height };
}

/** The color behind a panel: its own or that of what it lies on. */
function findBackground(panel: HTMLElement): string {
  for (let element: HTMLElement | null = panel; element; element = element.parentElement) {
    const { backgroundColor } = getComputedStyle(element);
    if (!/^(transparent|rgba\(.*, 0\))$/.test(backgroundColor)) return backgroundColor;
  }
  return "white";
}

interface Body {
  readonly element: HTMLElement;
  /** Where it begins on the screen, scrolled content included. */
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly hasHeading: boolean;
}

/** The part of a panel with `data-figure`, whole though it may be scrolled; by default the panel with its heading. */
function readBody(panel: HTMLElement): Body {
  const part = panel.querySelector<HTMLElement>("[data-figure]");
  const element = part ?? panel;
  const box = element.getBoundingClientRect();
  return {
    element,
    left: box.left - element.scrollLeft,
    top: box.top - element.scrollTop,
    width: Math.max(box.width, element.scrollWidth),
    height: part ? Math.max(box.height, element.scrollHeight) : box.height,
    hasHeading: part === null,
  };
}

function drawBody(body: Body, measure: Measure): readonly string[] {
  const { element } = body;
  const canvases = [...element.querySelectorAll("canvas")].map((canvas, at) => {
    const { x, y, width, height } = placeOf(canvas, body);
    const drawing = drawingOf(canvas);
    if (!drawing) {
      return `<image x="${x}" y="${y}" width="${width}" height="${height}" href="${canvas.toDataURL("image/png")}"/>`;
    }
    const pen = new SvgPen(measure, { name: `clip${at}`, x, y });
    drawing.draw(pen, drawing.size);
    return pen.finish();
  });
  const trees = findTrees(element).map((tree) => {
    const { x, y } = placeOf(tree, body);
    return `<g transform="translate(${short(x)} ${short(y)})">${writeTree(tree)}</g>`;
  });
  const bars = [...element.querySelectorAll<HTMLElement>("[data-drawn-bar]")].map((bar) => {
    const { x, y, width, height } = placeOf(bar, body);
    const box = `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
    return `<rect ${box} rx="1.5" fill="${getComputedStyle(bar).backgroundColor}"/>`;
  });
  // A label within a label is part of its text.
  const labels = [...element.querySelectorAll<HTMLElement>("[data-drawn-label]")]
    .filter((label) => !label.parentElement?.closest("[data-drawn-label]"))
    .map((label) => writeLabel(label, body, measure));
  return [...canvases, ...trees, ...bars, ...labels];
}

/** Text of the page in its size, weight and color, shortened where the page cuts it. */
function writeLabel(label: HTMLElement, body: Body, measure: Measure): string {
  const range = document.createRange();
  range.selectNodeContents(label);
  const text = range.getBoundingClientRect();
  const box = label.getBoundingClientRect();
  const { fontSize, fontWeight, fontFamily, color } = getComputedStyle(label);
  const size = Number.parseFloat(fontSize);
  const isCut = text.width > box.width + 1 && label.scrollWidth > label.clientWidth + 1;
  const words = (label.textContent ?? "").replaceAll(/\s+/g, " ").trim();
  const shown = isCut ? shortenText(words, box.width, (part) => measure(part, `${size}px ${fontFamily}`)) : words;
  const x = (isCut ? box.left : text.left) - body.left;
  const baseline = (text.top + text.bottom) / 2 - body.top + size * 0.35;
  const weight = fontWeight === "400" ? "" : ` font-weight="${fontWeight}"`;
  return `<text x="${short(x)}" y="${short(baseline)}" font-size="${short(size)}"${weight} fill="${color}">${escapeSvg(shown)}</text>`;
}

/** The longest beginning of a text that fits, with an ellipsis. */
export function shortenText(text: string, width: number, measure: (text: string) => number): string {
  if (measure(text) <= width) return text;
  let end = text.length;
  while (end > 0 && measure(`${text.slice(0, end)}…`) > width) end -= 1;
  return `${text.slice(0, end).trimEnd()}…`;
}

/** Lines of a text that are no wider than `width`; a longer word has a line of its own. */
export function wrapText(text: string, { width, measure }: { width: number; measure: Measure }): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && measure(`${last} ${word}`, FONT) <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Entries side by side, in as many rows as they need. */
function layOutLegend(entries: readonly LegendEntry[], width: number, measure: Measure) {
  const ink = createInk();
  let [x, row] = [SIDE_PX, 0];
  const parts = entries.map(({ label, color }) => {
    const wide = SWATCH_PX + 6 + measure(label, FONT) + GAP_PX;
    if (x > SIDE_PX && x + wide > width - SIDE_PX + GAP_PX) [x, row] = [SIDE_PX, row + 1];
    const [left, top] = [x, row * LINE_PX];
    x += wide;
    return (
      `<rect x="${short(left)}" y="${top}" width="${SWATCH_PX}" height="${SWATCH_PX}" rx="2" fill="${ink(color)}"/>` +
      `<text x="${short(left + SWATCH_PX + 6)}" y="${top + 9}">${escapeSvg(label)}</text>`
    );
  });
  return { svg: parts.join(""), height: entries.length === 0 ? 0 : (row + 1) * LINE_PX + 6 };
}

/** An SVG of the page as a file, its colors those of the theme. */
export function saveTree(tree: SVGElement, name: string): void {
  const background = `background-color:${getComputedStyle(document.body).backgroundColor}`;
  downloadText(name, writeTree(tree, background), "image/svg+xml");
}

/** Properties that a style sheet sets on SVG, and that a file needs inline. */
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

async function toPicture(svg: string): Promise<HTMLImageElement> {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await picture.decode();
  return picture;
}

function placeOf(element: Element, body: Body) {
  const { left, top, width, height } = element.getBoundingClientRect();
  return { x: left - body.left, y: top - body.top, width, height };
}
