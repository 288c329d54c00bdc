// A pen that writes SVG instead of painting: what the charts of this folder draw on a canvas, as a document that stays sharp.
// Knows what they use of a canvas, and no more.

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

export function escapeSvg(text: string): string {
  return text.replace(/[&<>"]/g, (one) => ENTITIES[one] ?? one);
}

interface State {
  readonly fillStyle: string;
  readonly strokeStyle: string;
  readonly globalAlpha: number;
  readonly lineWidth: number;
  readonly font: string;
  readonly dash: readonly number[];
  readonly x: number;
  readonly y: number;
  readonly clip: string | null;
}

export class SvgPen {
  fillStyle = "#000";
  strokeStyle = "#000";
  globalAlpha = 1;
  lineWidth = 1;
  lineJoin = "miter";
  textBaseline = "alphabetic";
  font = "10px sans-serif";
  #dash: readonly number[] = [];
  #x = 0;
  #y = 0;
  #clip: string | null = null;
  #path = "";
  #saved: State[] = [];
  #parts: string[] = [];
  #clips: string[] = [];
  /** Shapes of the same look follow one another by the thousand: they are one path. */
  #open: { readonly look: string; readonly shapes: string[] } | null = null;
  readonly #name: string;
  readonly #measure: (text: string, font: string) => number;

  /** `name`: what its clips are called, of its own within the document. */
  constructor(name: string, measure: (text: string, font: string) => number, x = 0, y = 0) {
    this.#name = name;
    this.#measure = measure;
    this.#x = x;
    this.#y = y;
  }

  save(): void {
    const { fillStyle, strokeStyle, globalAlpha, lineWidth, font } = this;
    this.#saved.push({
      fillStyle,
      strokeStyle,
      globalAlpha,
      lineWidth,
      font,
      dash: this.#dash,
      x: this.#x,
      y: this.#y,
      clip: this.#clip,
    });
  }

  restore(): void {
    const state = this.#saved.pop();
    if (!state) return;
    const { dash, x, y, clip, ...rest } = state;
    Object.assign(this, rest);
    [this.#dash, this.#x, this.#y, this.#clip] = [dash, x, y, clip];
  }

  translate(x: number, y: number): void {
    this.#x += x;
    this.#y += y;
  }

  clearRect(): void {
    // Every sheet is clean.
  }

  setLineDash(dash: readonly number[]): void {
    this.#dash = dash;
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
    this.#add(`fill="${this.fillStyle}"`, this.#path);
  }

  stroke(): void {
    this.#add(this.#strokeLook(), this.#path);
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.#add(`fill="${this.fillStyle}"`, this.#box(x, y, width, height));
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.#add(this.#strokeLook(), this.#box(x, y, width, height));
  }

  fillText(text: string, x: number, y: number): void {
    this.#flush();
    const [, size = "10"] = /([\d.]+)px/.exec(this.font) ?? [];
    const down = this.textBaseline === "middle" ? Number(size) * 0.35 : this.textBaseline === "top" ? Number(size) : 0;
    this.#parts.push(
      `<text x="${short(x + this.#x)}" y="${short(y + this.#y + down)}" font-size="${size}" fill="${this.fillStyle}"` +
        `${this.#alpha()}${this.#clipped()}>${escapeSvg(text)}</text>`,
    );
  }

  /** What was drawn, as elements of a document. */
  finish(): string {
    this.#flush();
    return `${this.#clips.length > 0 ? `<defs>${this.#clips.join("")}</defs>` : ""}${this.#parts.join("")}`;
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

function short(value: number): string {
  return String(Math.round(value * 100) / 100);
}
