// The three canvases of the picture and what moves on them: group boxes behind, squares, outlines before. Owns the camera,
// the flight of units and when to draw; knows nothing of React or of what units are.

import type { Marks, Projection } from "../../../layers/squares/marks.ts";
import { PickGrid } from "../../../layers/squares/pick-grid.ts";
import { SquaresLayer } from "../../../layers/squares/squares-layer.ts";
import type { UnitLayout } from "../../../layout/layout.ts";
import { fitCamera, mixCameras, panCamera, revealSquare, type Size, toLayout, zoomCamera } from "./camera.ts";
import { paintGroups } from "./group-painter.ts";
import { NOTHING_OUTLINED, type Outlined, paintOutlines } from "./outline-painter.ts";
import type { Tokens } from "./tokens.ts";
import { type CaptionOf, paintCaptions } from "./unit-painter.ts";

const FLIGHT_MS = 700;
const CAMERA_MS = 220;

export interface StageCanvases {
  readonly groups: HTMLCanvasElement;
  readonly squares: HTMLCanvasElement;
  readonly outlines: HTMLCanvasElement;
}

interface Flight {
  readonly start: number;
  readonly from: Projection;
  readonly durationMs: number;
  readonly movesUnits: boolean;
}

export class Stage {
  readonly #canvases: StageCanvases;
  readonly #squares: SquaresLayer;
  #layout: UnitLayout | null = null;
  #grid: PickGrid | null = null;
  #tokens: Tokens | null = null;
  #outlined: Outlined = NOTHING_OUTLINED;
  #marks: Marks | null = null;
  #captionOf: CaptionOf | null = null;
  readonly #watchers = new Set<() => void>();
  #viewport: Size = { width: 0, height: 0 };
  /** What a fitted camera fills. */
  #fitSize: Size = { width: 0, height: 0 };
  #pixelRatio = 1;
  #camera: Projection = { scale: 1, offsetX: 0, offsetY: 0 };
  #isFitted = true;
  #flight: Flight | null = null;
  #frame: number | null = null;

  /** Throws where the browser cannot draw. */
  constructor(canvases: StageCanvases) {
    this.#canvases = canvases;
    this.#squares = new SquaresLayer(canvases.squares);
  }

  dispose(): void {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    this.#squares.dispose();
  }

  /** `keepsFit`: only the details beside the picture came or went, and nothing moves under the pointer for that. */
  setSize(viewport: Size, pixelRatio: number, keepsFit = false): void {
    this.#viewport = viewport;
    if (!keepsFit) this.#fitSize = viewport;
    this.#pixelRatio = pixelRatio;
    for (const canvas of Object.values(this.#canvases) as HTMLCanvasElement[]) {
      canvas.width = Math.round(viewport.width * pixelRatio);
      canvas.height = Math.round(viewport.height * pixelRatio);
    }
    if (this.#isFitted && this.#flight === null) this.#camera = this.#fitted();
    // A canvas is blank after a change of its size; waiting for the next frame would show it.
    this.#draw(performance.now());
  }

  /** Units fly from where they are; the first layout is simply there. */
  setLayout(layout: UnitLayout, names: readonly string[]): void {
    const isFirst = this.#layout === null;
    const from = this.#current(performance.now());
    this.#layout = layout;
    this.#grid = new PickGrid(layout, layout.bounds);
    this.#outlined = NOTHING_OUTLINED;
    this.#squares.setPlaces(layout, names);
    if (this.#isFitted) this.#camera = this.#fitted();
    this.#fly(isFirst ? this.#camera : from, isFirst || prefersStillness() ? 0 : FLIGHT_MS, true);
  }

  /** `captionOf`: what is written into squares that are near. */
  setMarks(marks: Marks, captionOf: CaptionOf): void {
    this.#marks = marks;
    this.#captionOf = captionOf;
    this.#squares.setMarks(marks);
    this.#request();
  }

  setTokens(tokens: Tokens): void {
    this.#tokens = tokens;
    this.#request();
  }

  setOutlined(outlined: Outlined): void {
    this.#outlined = outlined;
    this.#request();
  }

  pick(x: number, y: number): number | null {
    if (this.#flight?.movesUnits) return null;
    return this.#grid?.find(...toLayout(this.#camera, x, y)) ?? null;
  }

  get grid(): PickGrid | null {
    return this.#grid;
  }

  pan(dx: number, dy: number): void {
    this.#land();
    this.#camera = panCamera(this.#camera, dx, dy);
    this.#isFitted = false;
    this.#request();
  }

  zoom(factor: number, x: number, y: number): void {
    this.#land();
    this.#camera = zoomCamera(this.#camera, factor, x, y, this.#fitted());
    this.#isFitted = false;
    this.#request();
  }

  zoomMiddle(factor: number): void {
    this.zoom(factor, this.#viewport.width / 2, this.#viewport.height / 2);
  }

  fit(): void {
    const from = this.#current(performance.now());
    this.#fitSize = this.#viewport;
    this.#camera = this.#fitted();
    this.#isFitted = true;
    this.#fly(from, prefersStillness() ? 0 : CAMERA_MS, this.#flight?.movesUnits ?? false);
  }

  reveal(row: number): void {
    const { x, y } = this.#layout ?? {};
    const camera = revealSquare(this.#camera, x?.[row] ?? 0, y?.[row] ?? 0, this.#viewport);
    if (camera === this.#camera) return;
    this.#camera = camera;
    this.#isFitted = false;
    this.#request();
  }

  get camera(): Projection {
    return this.#camera;
  }

  /** Tells when the camera has moved. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Where the middle of a row's square is on the canvas, in page pixels; null where that is out of sight. */
  locate(row: number): readonly [x: number, y: number] | null {
    const { scale, offsetX, offsetY } = this.#camera;
    const { x, y } = this.#layout ?? {};
    const left = ((x?.[row] ?? 0) + 0.5) * scale + offsetX;
    const top = ((y?.[row] ?? 0) + 0.5) * scale + offsetY;
    const isInSight = left >= 0 && top >= 0 && left <= this.#viewport.width && top <= this.#viewport.height;
    return isInSight ? [left, top] : null;
  }

  #fitted(): Projection {
    return fitCamera(this.#layout?.bounds ?? { width: 1, height: 1 }, this.#fitSize);
  }

  #fly(from: Projection, durationMs: number, movesUnits: boolean): void {
    this.#flight = { start: performance.now(), from, durationMs, movesUnits };
    this.#request();
  }

  /** Who takes the camera in hand does not wait for it to arrive; units fly on. */
  #land(): void {
    if (this.#flight === null) return;
    this.#camera = this.#current(performance.now());
    if (this.#flight.movesUnits) this.#flight = { ...this.#flight, from: this.#camera };
    else this.#flight = null;
  }

  #progress(now: number): number {
    if (this.#flight === null) return 1;
    const { start, durationMs } = this.#flight;
    const ratio = durationMs === 0 ? 1 : Math.min(1, Math.max(0, (now - start) / durationMs));
    return ratio * ratio * (3 - 2 * ratio);
  }

  #current(now: number): Projection {
    return this.#flight === null ? this.#camera : mixCameras(this.#flight.from, this.#camera, this.#progress(now));
  }

  #request(): void {
    if (this.#frame !== null) return;
    this.#frame = requestAnimationFrame((now) => {
      this.#frame = null;
      this.#draw(now);
    });
  }

  #draw(now: number): void {
    const progress = this.#progress(now);
    const camera = this.#current(now);
    const movesUnits = this.#flight?.movesUnits ?? false;
    if (progress >= 1) this.#flight = null;
    else this.#request();
    const flown = movesUnits ? progress : 1;
    this.#squares.draw({ ...camera, ...this.#viewport, pixelRatio: this.#pixelRatio, flown });
    this.#paint(this.#canvases.groups, flown, (context, layout, tokens) =>
      paintGroups(context, layout, camera, this.#viewport, tokens),
    );
    this.#paint(this.#canvases.outlines, flown, (context, layout, tokens) => {
      if (this.#marks !== null && this.#captionOf !== null) {
        paintCaptions(context, layout, this.#marks, this.#captionOf, camera, this.#viewport, tokens);
      }
      paintOutlines(context, layout, this.#outlined, camera, this.#viewport, tokens);
    });
    for (const watcher of this.#watchers) watcher();
  }

  /** Boxes and outlines belong to the new places: they come into sight as units arrive. */
  #paint(
    canvas: HTMLCanvasElement,
    flown: number,
    paint: (context: CanvasRenderingContext2D, layout: UnitLayout, tokens: Tokens) => void,
  ): void {
    const context = canvas.getContext("2d");
    if (context === null) return;
    context.setTransform(this.#pixelRatio, 0, 0, this.#pixelRatio, 0, 0);
    context.clearRect(0, 0, this.#viewport.width, this.#viewport.height);
    context.globalAlpha = flown * flown;
    if (this.#layout !== null && this.#tokens !== null) paint(context, this.#layout, this.#tokens);
  }
}

function prefersStillness(): boolean {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}
