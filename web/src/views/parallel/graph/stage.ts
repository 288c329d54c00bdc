// The canvases of a Marey graph: gridlines behind, spans and bands, labels in front. Owns the window while it moves, and redraws
// only the canvases that changed. Independent of React, servers and links.

import type { Pen } from "../../../charts/pen.ts";
import { MareyLayer } from "../../../layers/marey/marey-layer.ts";
import { SpanIndex } from "../../../layers/marey/pick.ts";
import type { NsWindow } from "../../../state/parallel.ts";
import type { LaneCurve } from "./curves.ts";
import type { Drawn } from "./drawn.ts";
import { AXIS_PX, type PaintedMark, type PaintScene, type PaintTokens, paintBack, paintFront, xOf } from "./painter.ts";
import { findLane, type PlacedRows, placeRows } from "./rows.ts";

export interface StageElements {
  readonly back: HTMLCanvasElement;
  readonly spans: HTMLCanvasElement;
  readonly front: HTMLCanvasElement;
  /** The time range of the current drag. */
  readonly brush: HTMLElement;
}

export interface StageLook {
  readonly tokens: PaintTokens;
  readonly originNs: number;
  readonly stepEndsNs: readonly number[];
  readonly curves: readonly LaneCurve[];
}

/** What is at a point of the drawing. */
export interface Hit {
  readonly span: number;
  /** The band at the point, if any; `span` is its first span. */
  readonly band: number | null;
}

/** Bits of stale canvases: each canvas is drawn only when it has changed. */
const BACK = 1;
const SPANS = 2;
const FRONT = 4;
const ALL = BACK | SPANS | FRONT;

const TOLERANCE_PX = 3;
const EMPTY_ROWS: PlacedRows = placeRows([], 0);

export class GraphStage {
  readonly #elements: StageElements;
  readonly #layer: MareyLayer;
  #size = { width: 1, height: 1 };
  #ratio = 1;
  #window: NsWindow = { fromNs: 0, toNs: 1 };
  #drawn: Drawn | null = null;
  #index: SpanIndex | null = null;
  #rows: PlacedRows = EMPTY_ROWS;
  #look: StageLook | null = null;
  #lit: number | null = null;
  #selected: number | null = null;
  #marks: readonly PaintedMark[] | null = null;
  #scrollY = 0;
  #frame: number | null = null;
  #stale = 0;
  #isNew = false;
  /** Called when a new graph has been drawn. */
  onDrawn: (() => void) | null = null;

  /** Throws if the browser has no WebGL2. */
  constructor(elements: StageElements) {
    this.#elements = elements;
    this.#layer = new MareyLayer(elements.spans);
  }

  get window(): NsWindow {
    return this.#window;
  }

  get rows(): PlacedRows {
    return this.#rows;
  }

  /** Created on first use. */
  get index(): SpanIndex | null {
    if (this.#index === null && this.#drawn !== null) {
      this.#index = new SpanIndex(this.#drawn.marey.spans, this.#drawn.marey.rows.length);
    }
    return this.#index;
  }

  get drawn(): Drawn | null {
    return this.#drawn;
  }

  get scrollY(): number {
    return this.#scrollY;
  }

  dispose(): void {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    this.#layer.dispose();
  }

  setSize(width: number, height: number, ratio: number): void {
    this.#size = { width: Math.max(1, width), height: Math.max(1, height) };
    this.#ratio = ratio;
    const { back, spans, front } = this.#elements;
    for (const canvas of [back, spans, front]) {
      canvas.width = Math.round(this.#size.width * ratio);
      canvas.height = Math.round(this.#size.height * ratio);
    }
    this.#placeRows();
    // A resized canvas is blank; waiting for the next frame would show that.
    this.drawNow();
  }

  /** Replaces the graph and draws it immediately. */
  setDrawn(drawn: Drawn): void {
    const isNewGraph = drawn.marey !== this.#drawn?.marey;
    const hasNewRows = drawn.marey.rows !== this.#drawn?.marey.rows;
    this.#drawn = drawn;
    if (isNewGraph) this.#index = null;
    if (isNewGraph) this.#lit = null;
    this.#layer.setSpans(drawn.spans);
    this.#layer.setBands(drawn.bands);
    if (hasNewRows) this.#placeRows();
    this.#isNew = true;
    this.#stale |= hasNewRows ? ALL : SPANS | FRONT;
    this.#drawStale();
  }

  setLook(look: StageLook): void {
    this.#look = look;
    this.#schedule(BACK | FRONT);
  }

  setWindow(window: NsWindow): void {
    const { fromNs, toNs } = this.#window;
    if (window.fromNs === fromNs && window.toNs === toNs) return;
    this.#window = window;
    this.#schedule(ALL);
  }

  setBrush(brush: NsWindow | null): void {
    const { style } = this.#elements.brush;
    style.display = brush === null ? "" : "block";
    if (brush === null) return;
    const x = xOf({ window: this.#window, width: this.#size.width });
    style.left = `${x(brush.fromNs)}px`;
    style.width = `${x(brush.toNs) - x(brush.fromNs)}px`;
  }

  setScroll(y: number): void {
    if (y === this.#scrollY) return;
    this.#scrollY = y;
    this.#schedule(ALL);
  }

  /** `span`: an index of the spans; highlights its whole instance. */
  setLit(span: number | null): void {
    const lit = span === null ? null : (this.#drawn?.instance[span] ?? null);
    if (lit === this.#lit) return;
    this.#lit = lit;
    this.#schedule(SPANS);
  }

  setSelected(span: number | null): void {
    if (span === this.#selected) return;
    this.#selected = span;
    this.#schedule(FRONT);
  }

  /** Null: nothing is highlighted. */
  setMarks(marks: readonly PaintedMark[] | null): void {
    if (marks === this.#marks) return;
    this.#marks = marks;
    this.#schedule(FRONT);
  }

  /** The time at an x position, in CSS pixels from the left of the drawing. */
  timeAt(x: number): number {
    const { fromNs, toNs } = this.#window;
    return fromNs + (x / this.#size.width) * (toNs - fromNs);
  }

  hit(x: number, y: number): Hit | null {
    if (this.#drawn === null || y < AXIS_PX) return null;
    const below = y - AXIS_PX + this.#scrollY;
    const timeNs = this.timeAt(x);
    const row = findLane(this.#rows, below);
    const toleranceNs = (TOLERANCE_PX / this.#size.width) * (this.#window.toNs - this.#window.fromNs);
    const span = row === null ? null : (this.index?.find(row, timeNs, toleranceNs) ?? null);
    if (span !== null) return { span, band: null };
    return row === null ? this.#hitBand(timeNs, below) : null;
  }

  /** Draws stale canvases in this task instead of in the next frame. */
  flush(): void {
    if (this.#stale !== 0) this.#drawStale();
  }

  /** Draws all canvases in this task, so that they can be copied right after. */
  drawNow(): void {
    this.#stale = ALL;
    this.#drawStale();
  }

  #hitBand(timeNs: number, y: number): Hit | null {
    const { spans, bands } = this.#drawn?.marey ?? { spans: null, bands: null };
    if (!spans || !bands) return null;
    const { top, height } = this.#rows;
    for (let band = bands.count - 1; band >= 0; band -= 1) {
      const [from, to] = [spans.row[bands.fromSpan[band] ?? 0] ?? 0, spans.row[bands.toSpan[band] ?? 0] ?? 0];
      const isDown = (top[from] ?? 0) < (top[to] ?? 0);
      const [upper, lower] = isDown ? [from, to] : [to, from];
      const start = (top[upper] ?? 0) + (height[upper] ?? 0);
      const share = (y - start) / Math.max(1, (top[lower] ?? 0) - start);
      if (share < 0 || share > 1) continue;
      const along = isDown ? share : 1 - share;
      const mix = (a: Float64Array, b: Float64Array) => (a[band] ?? 0) * (1 - along) + (b[band] ?? 0) * along;
      if (timeNs < mix(bands.fromStartNs, bands.toStartNs) || timeNs > mix(bands.fromEndNs, bands.toEndNs)) continue;
      return { span: bands.fromSpan[band] ?? 0, band };
    }
    return null;
  }

  #placeRows(): void {
    this.#rows = placeRows(this.#drawn?.marey.rows ?? [], this.#size.height - AXIS_PX);
    this.#layer.setRows(this.#rows);
    this.#scrollY = Math.max(0, Math.min(this.#scrollY, this.#rows.total - (this.#size.height - AXIS_PX)));
  }

  #schedule(parts: number): void {
    this.#stale |= parts;
    if (this.#frame === null) this.#frame = requestAnimationFrame(() => this.#drawStale());
  }

  #drawStale(): void {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    this.#frame = null;
    const stale = this.#stale;
    this.#stale = 0;
    if ((stale & SPANS) !== 0) this.#drawSpans();
    this.#paint(stale);
    if (this.#isNew) {
      this.#isNew = false;
      this.onDrawn?.();
    }
  }

  #drawSpans(): void {
    if (this.#drawn === null) return;
    const { fromNs, toNs } = this.#window;
    const scale = this.#size.width / (toNs - fromNs);
    this.#layer.draw({
      pixelRatio: this.#ratio,
      scale,
      offsetX: (this.#drawn.baseNs - fromNs) * scale,
      offsetY: AXIS_PX - this.#scrollY,
      lit: this.#lit,
    });
  }

  #paint(stale: number): void {
    const { back, front } = this.#elements;
    if ((stale & BACK) !== 0) this.#withPen(back, (pen) => this.paintBack(pen));
    if ((stale & FRONT) !== 0) this.#withPen(front, (pen) => this.paintFront(pen));
  }

  /** Paints what is behind the spans, with any pen. */
  paintBack(pen: Pen): void {
    const look = this.#look;
    if (look) paintBack(pen, this.#sceneOf(look), look.stepEndsNs);
  }

  /** Paints what is in front of the spans, with any pen. */
  paintFront(pen: Pen): void {
    const look = this.#look;
    if (!look) return;
    paintFront(pen, this.#sceneOf(look), {
      drawn: this.#drawn,
      marks: this.#marks,
      selected: this.#selected,
      curves: look.curves,
    });
  }

  #sceneOf({ originNs, tokens }: StageLook): PaintScene {
    return {
      ...this.#size,
      window: this.#window,
      originNs,
      rows: this.#rows,
      scrollY: this.#scrollY,
      tokens,
    };
  }

  #withPen(canvas: HTMLCanvasElement, paint: (pen: Pen) => void): void {
    const pen = canvas.getContext("2d");
    if (pen === null || this.#look === null) return;
    pen.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    paint(pen);
  }
}
