// A pen that writes an SVG document instead of painting. Knows what the painters of the picture use, and no more.

import type { Pen } from "./pen.ts";
import { short } from "./pen.ts";

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

export class SvgPen implements Pen {
  font = "10px sans-serif";
  fillStyle: Pen["fillStyle"] = "#000";
  strokeStyle: Pen["strokeStyle"] = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  textBaseline: CanvasTextBaseline = "alphabetic";
  readonly #parts: string[] = [];
  readonly #transforms: string[] = [];
  readonly #measure: (text: string, font: string) => TextMetrics;
  #path: string[] = [];

  /** `measure`: how wide a text is in a font, which only a canvas knows. */
  constructor(measure: (text: string, font: string) => TextMetrics) {
    this.#measure = measure;
  }

  beginPath(): void {
    this.#path = [];
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.#path.push(`M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`);
  }

  roundRect(x: number, y: number, width: number, height: number, radii?: number | DOMPointInit | unknown): void {
    const most = Math.min(width, height) / 2;
    const r = Math.max(0, Math.min(typeof radii === "number" ? radii : 0, most));
    if (r < 0.5) {
      this.rect(x, y, width, height);
      return;
    }
    const [w, h] = [width - 2 * r, height - 2 * r];
    const corner = (dx: number, dy: number) => `a${short(r)} ${short(r)} 0 0 1 ${short(dx)} ${short(dy)}`;
    this.#path.push(
      `M${short(x + r)} ${short(y)}h${short(w)}${corner(r, r)}v${short(h)}${corner(-r, r)}` +
        `h${short(-w)}${corner(-r, -r)}v${short(-h)}${corner(r, -r)}z`,
    );
  }

  moveTo(x: number, y: number): void {
    this.#path.push(`M${short(x)} ${short(y)}`);
  }

  lineTo(x: number, y: number): void {
    this.#path.push(`L${short(x)} ${short(y)}`);
  }

  fill(): void {
    this.#addPath(`fill="${this.fillStyle}"`);
  }

  stroke(): void {
    this.#addPath(`fill="none" stroke="${this.strokeStyle}" stroke-width="${short(this.lineWidth)}"`);
  }

  fillText(text: string, x: number, y: number): void {
    const [, weight = "400", size = "10"] = /^(\d+)?\s*([\d.]+)px/.exec(this.font) ?? [];
    const transform = this.#transforms.length > 0 ? ` transform="${this.#transforms.join(" ")}"` : "";
    this.#parts.push(
      `<text x="${short(x)}" y="${short(y)}" font-size="${size}" font-weight="${weight}" fill="${this.fillStyle}"` +
        `${this.#opacity()}${transform}>${escapeXml(text)}</text>`,
    );
  }

  measureText(text: string): TextMetrics {
    return this.#measure(text, this.font);
  }

  save(): void {
    // Painters save only to move and turn one text.
  }

  restore(): void {
    this.#transforms.length = 0;
  }

  translate(x: number, y: number): void {
    this.#transforms.push(`translate(${short(x)} ${short(y)})`);
  }

  rotate(angle: number): void {
    this.#transforms.push(`rotate(${short((angle * 180) / Math.PI)})`);
  }

  /** The whole document. */
  toText(width: number, height: number, background: string, title: string): string {
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`,
      ` font-family="Inter, system-ui, sans-serif"><title>${escapeXml(title)}</title>`,
      `<rect width="100%" height="100%" fill="${background}"/>`,
      this.#parts.join("\n"),
      "</svg>\n",
    ].join("");
  }

  #addPath(paint: string): void {
    if (this.#path.length > 0) this.#parts.push(`<path ${paint}${this.#opacity()} d="${this.#path.join("")}"/>`);
  }

  #opacity(): string {
    return this.globalAlpha >= 1 ? "" : ` opacity="${short(this.globalAlpha)}"`;
  }
}

function escapeXml(text: string): string {
  // Characters that XML forbids even when escaped would make the whole document unreadable.
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "")
      .replace(/[&<>"]/g, (found) => ENTITIES[found] ?? found)
  );
}
