// A panel's drawings as a file: all its canvases as they stand on the page, with their words, as pixels or as shapes.

import { downloadBlob, downloadText } from "../base/download.ts";
import { drawingOf } from "./canvas.tsx";
import { escapeSvg, SvgPen } from "./svg-pen.ts";

export function savePng(panel: HTMLElement, name: string): void {
  const { frame, style, title } = readPanel(panel);
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
    // A drawing starts on a clean sheet; here that would be the page's color.
    if (drawing) drawing.draw(withoutClearing(pen), drawing.size);
    else pen.drawImage(canvas, 0, 0, box.width, box.height);
    pen.restore();
  }
  pen.fillStyle = style.color;
  pen.font = `11px ${style.fontFamily}`;
  for (const { text, x, y } of readLabels(panel, frame)) pen.fillText(text, x, y);
  sheet.toBlob((blob) => blob && downloadBlob(name, blob));
}

function withoutClearing(pen: CanvasRenderingContext2D): CanvasRenderingContext2D {
  return new Proxy(pen, {
    get(target, key) {
      if (key === "clearRect") return () => {};
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
    set: (target, key, value) => Reflect.set(target, key, value),
  });
}

export function saveSvg(panel: HTMLElement, name: string): void {
  downloadText(name, drawSvg(panel), "image/svg+xml");
}

/** The panel's drawings as one SVG. */
export function drawSvg(panel: HTMLElement): string {
  const { frame, style, title } = readPanel(panel);
  const ruler = document.createElement("canvas").getContext("2d");
  const measure = (text: string, font: string) => {
    if (!ruler) return 0;
    ruler.font = font;
    return ruler.measureText(text).width;
  };
  const parts = [...panel.querySelectorAll("canvas")].map((canvas, at) => {
    const box = canvas.getBoundingClientRect();
    const drawing = drawingOf(canvas);
    const pen = new SvgPen(`clip${at}`, measure, box.left - frame.left, box.top - frame.top);
    if (drawing) drawing.draw(pen as unknown as CanvasRenderingContext2D, drawing.size);
    return pen.finish();
  });
  const labels = readLabels(panel, frame).map(
    ({ text, x, y }) => `<text x="${x}" y="${y}" font-size="11">${escapeSvg(text)}</text>`,
  );
  const [width, height] = [Math.round(frame.width), Math.round(frame.height)];
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
    `font-family="${escapeSvg(style.fontFamily)}" fill="${style.color}">` +
    `<title>${escapeSvg(title)}</title><rect width="${width}" height="${height}" fill="${style.backgroundColor}"/>` +
    `<text x="14" y="22" font-size="13" font-weight="600">${escapeSvg(title)}</text>` +
    `${parts.join("")}${labels.join("")}</svg>`
  );
}

/** An SVG of the page as a file, its colors those of the theme. */
export function saveTree(tree: SVGElement, name: string): void {
  const copy = tree.cloneNode(true) as SVGElement;
  const originals = tree.querySelectorAll("path");
  copy.querySelectorAll("path").forEach((path, at) => {
    const original = originals[at];
    if (!original) return;
    const { stroke, strokeWidth, strokeDasharray } = getComputedStyle(original);
    path.setAttribute(
      "style",
      `fill:none;stroke:${stroke};stroke-width:${strokeWidth};stroke-dasharray:${strokeDasharray}`,
    );
  });
  copy.style.backgroundColor = getComputedStyle(document.body).backgroundColor;
  downloadText(name, new XMLSerializer().serializeToString(copy), "image/svg+xml");
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
