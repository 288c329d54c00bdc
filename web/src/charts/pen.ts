// The drawing interface of charts: the part of a 2D canvas that painters use, and an implementation that writes SVG.

type Canvas2d = Pick<
  CanvasRenderingContext2D,
  | "beginPath"
  | "closePath"
  | "moveTo"
  | "lineTo"
  | "rect"
  | "roundRect"
  | "arc"
  | "clip"
  | "fill"
  | "stroke"
  | "fillRect"
  | "strokeRect"
  | "clearRect"
  | "fillText"
  | "strokeText"
  | "save"
  | "restore"
  | "translate"
  | "rotate"
  | "setLineDash"
  | "font"
  | "fillStyle"
  | "strokeStyle"
  | "lineWidth"
  | "lineJoin"
  | "globalAlpha"
  | "textAlign"
  | "textBaseline"
>;

/** A canvas is one. */
export interface Pen extends Canvas2d {
  measureText(text: string): { readonly width: number };
}

/** How wide a text is in a font. */
export type Measure = (text: string, font: string) => number;

/** Only a canvas knows it. */
export function createMeasure(): Measure {
  const ruler = document.createElement("canvas").getContext("2d");
  return (text, font) => {
    if (!ruler) return text.length * 6;
    ruler.font = font;
    return ruler.measureText(text).width;
  };
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

export function escapeSvg(text: string): string {
  // Characters that XML forbids even when escaped would make the whole document unreadable.
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "")
      .replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character)
  );
}

/** Numbers in documents: a hundredth of a pixel is enough. */
export function short(value: number): string {
  return String(Math.round(value * 100) / 100);
}

interface SvgDocument {
  readonly width: number;
  readonly height: number;
  readonly title: string;
  readonly background: string;
  /** Of what says nothing else. */
  readonly color: string;
  readonly fontFamily?: string;
}

export const FILE_FONT = "Inter, system-ui, sans-serif";

export function writeSvgDocument(page: SvgDocument, parts: readonly string[]): string {
  const [width, height] = [Math.round(page.width), Math.round(page.height)];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
      `font-family="${escapeSvg(page.fontFamily ?? FILE_FONT)}" font-size="11" fill="${page.color}">`,
    `<title>${escapeSvg(page.title)}</title>`,
    `<rect width="${width}" height="${height}" fill="${page.background}"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

interface State {
  readonly fillStyle: Pen["fillStyle"];
  readonly strokeStyle: Pen["strokeStyle"];
  readonly globalAlpha: number;
  readonly lineWidth: number;
  readonly lineJoin: CanvasLineJoin;
  readonly textAlign: CanvasTextAlign;
  readonly textBaseline: CanvasTextBaseline;
  readonly font: string;
  readonly dash: readonly number[];
  readonly x: number;
  readonly y: number;
  readonly turn: number;
  readonly clip: string | null;
}

interface SvgPenOptions {
  /** What its clips are called, its own within the document. */
  readonly name?: string;
  /** Where it begins. */
  readonly x?: number;
  readonly y?: number;
}

export class SvgPen implements Pen {
  fillStyle: Pen["fillStyle"] = "#000";
  strokeStyle: Pen["strokeStyle"] = "#000";
  globalAlpha = 1;
  lineWidth = 1;
  lineJoin: CanvasLineJoin = "miter";
  textAlign: CanvasTextAlign = "start";
  textBaseline: CanvasTextBaseline = "alphabetic";
  font = "10px sans-serif";
  #dash: readonly number[] = [];
  #x: number;
  #y: number;
  /** Radians; only text is turned. */
  #turn = 0;
  #clip: string | null = null;
  #path = "";
  #saved: State[] = [];
  #parts: string[] = [];
  #clips: string[] = [];
  /** Rectangles of the same look follow one another by the thousand: they are one path. */
  #open: { readonly look: string; readonly shapes: string[] } | null = null;
  readonly #name: string;
  readonly #measure: Measure;

  constructor(measure: Measure, { name = "clip", x = 0, y = 0 }: SvgPenOptions = {}) {
    this.#measure = measure;
    this.#name = name;
    this.#x = x;
    this.#y = y;
  }

  save(): void {
    const { fillStyle, strokeStyle, globalAlpha, lineWidth, lineJoin, textAlign, textBaseline, font } = this;
    this.#saved.push({
      fillStyle,
      strokeStyle,
      globalAlpha,
      lineWidth,
      lineJoin,
      textAlign,
      textBaseline,
      font,
      dash: this.#dash,
      x: this.#x,
      y: this.#y,
      turn: this.#turn,
      clip: this.#clip,
    });
  }

  restore(): void {
    const state = this.#saved.pop();
    if (!state) return;
    const { dash, x, y, turn, clip, ...rest } = state;
    Object.assign(this, rest);
    [this.#dash, this.#x, this.#y, this.#turn, this.#clip] = [dash, x, y, turn, clip];
  }

  translate(x: number, y: number): void {
    this.#x += x;
    this.#y += y;
  }

  rotate(angle: number): void {
    this.#turn += angle;
  }

  clearRect(): void {
    // Every sheet is clean.
  }

  setLineDash(dash: Iterable<number>): void {
    this.#dash = [...dash];
  }

  measureText(text: string): { readonly width: number } {
    return { width: this.#measure(text, this.font) };
  }

  beginPath(): void {
    this.#path = "";
  }

  closePath(): void {
    this.#path += "z";
  }

  moveTo(x: number, y: number): void {
    this.#path += `M${this.#at(x, y)}`;
  }

  lineTo(x: number, y: number): void {
    this.#path += `${this.#path === "" ? "M" : "L"}${this.#at(x, y)}`;
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.#path += this.#box(x, y, width, height);
  }

  /** One radius for all corners. */
  roundRect(x: number, y: number, width: number, height: number, radii?: number | DOMPointInit | unknown): void {
    const most = Math.min(width, height) / 2;
    const r = Math.max(0, Math.min(typeof radii === "number" ? radii : 0, most));
    if (r < 0.5) {
      this.rect(x, y, width, height);
      return;
    }
    const [w, h] = [width - 2 * r, height - 2 * r];
    const corner = (dx: number, dy: number) => `a${short(r)} ${short(r)} 0 0 1 ${short(dx)} ${short(dy)}`;
    this.#path +=
      `M${this.#at(x + r, y)}h${short(w)}${corner(r, r)}v${short(h)}${corner(-r, r)}` +
      `h${short(-w)}${corner(-r, -r)}v${short(-h)}${corner(r, -r)}z`;
  }

  /** Whole circles only. */
  arc(x: number, y: number, radius: number): void {
    const r = short(radius);
    const turn = `a${r} ${r} 0 1 0`;
    this.#path += `M${this.#at(x - radius, y)}${turn} ${short(2 * radius)} 0${turn} ${short(-2 * radius)} 0z`;
  }

  clip(): void {
    this.#clip = `${this.#name}-${this.#clips.length}`;
    this.#clips.push(`<clipPath id="${this.#clip}"><path d="${this.#path}"/></clipPath>`);
  }

  fill(): void {
    this.#flush();
    this.#add(`fill="${this.fillStyle}"`, this.#path);
    this.#flush();
  }

  stroke(): void {
    this.#flush();
    this.#add(this.#strokeLook(), this.#path);
    this.#flush();
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.#add(`fill="${this.fillStyle}"`, this.#box(x, y, width, height));
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.#add(this.#strokeLook(), this.#box(x, y, width, height));
  }

  fillText(text: string, x: number, y: number): void {
    this.#write(`fill="${this.fillStyle}"`, text, x, y);
  }

  strokeText(text: string, x: number, y: number): void {
    this.#write(this.#strokeLook(), text, x, y);
  }

  /** What was drawn, as elements of a document. */
  finish(): string {
    this.#flush();
    return `${this.#clips.length > 0 ? `<defs>${this.#clips.join("")}</defs>` : ""}${this.#parts.join("\n")}`;
  }

  #write(look: string, text: string, x: number, y: number): void {
    this.#flush();
    const [, weight = "400", size = "10"] = /(?:(\d+) +)?([\d.]+)px/.exec(this.font) ?? [];
    const down = this.textBaseline === "middle" ? Number(size) * 0.35 : this.textBaseline === "top" ? Number(size) : 0;
    const anchor = { center: "middle", right: "end", end: "end" }[this.textAlign as string];
    const [left, top] = this.#turn === 0 ? [x + this.#x, y + this.#y] : [x, y];
    const turn = `translate(${short(this.#x)} ${short(this.#y)}) rotate(${short((this.#turn * 180) / Math.PI)})`;
    const element =
      `<text x="${short(left)}" y="${short(top + down)}" font-size="${size}" ${look}` +
      `${weight === "400" ? "" : ` font-weight="${weight}"`}${anchor ? ` text-anchor="${anchor}"` : ""}${this.#alpha()}`;
    // A clip is turned with the element that has it: the text around which it stays is in a group.
    this.#parts.push(
      this.#turn === 0
        ? `${element}${this.#clipped()}>${escapeSvg(text)}</text>`
        : `<g${this.#clipped()}>${element} transform="${turn}">${escapeSvg(text)}</text></g>`,
    );
  }

  #strokeLook(): string {
    const dash = this.#dash.length > 0 ? ` stroke-dasharray="${this.#dash.join(" ")}"` : "";
    const join = this.lineJoin === "round" ? ' stroke-linejoin="round"' : "";
    return `fill="none" stroke="${this.strokeStyle}" stroke-width="${short(this.lineWidth)}"${dash}${join}`;
  }

  #add(style: string, shape: string): void {
    if (shape === "") return;
    const look = `${style}${this.#alpha()}${this.#clipped()}`;
    if (this.#open?.look !== look) {
      this.#flush();
      this.#open = { look, shapes: [] };
    }
    this.#open.shapes.push(shape);
  }

  #flush(): void {
    if (this.#open) this.#parts.push(`<path ${this.#open.look} d="${this.#open.shapes.join("")}"/>`);
    this.#open = null;
  }

  #alpha(): string {
    return this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : "";
  }

  #clipped(): string {
    return this.#clip ? ` clip-path="url(#${this.#clip})"` : "";
  }

  #at(x: number, y: number): string {
    return `${short(x + this.#x)} ${short(y + this.#y)}`;
  }

  #box(x: number, y: number, width: number, height: number): string {
    return `M${this.#at(x, y)}h${short(width)}v${short(height)}h${short(-width)}z`;
  }
}
