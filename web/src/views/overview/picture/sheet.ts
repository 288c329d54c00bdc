// A 2D canvas that is not repainted for every frame: while the camera moves, the painted content is transformed, and
// repainted sharply when the camera rests. Owns its canvas; the paint function is passed in.

import type { Projection } from "../../../layers/squares/marks.ts";
import { isSameCamera, type Size, transformBetween } from "./camera.ts";

/** So few things are painted in less time than it takes to see that they are not crisp. */
const FEW = 250;

export interface SheetFrame {
  readonly camera: Projection;
  /** Where the camera flies to; the same as `camera` where it does not. */
  readonly target: Projection;
  readonly isMoving: boolean;
  readonly opacity: number;
}

/** Paints for a camera, and says how many things it painted. */
export type Paint = (context: CanvasRenderingContext2D, camera: Projection) => number;

export class Sheet {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D | null;
  #pixelRatio = 1;
  /** The frame that it was painted for; null: must be repainted. */
  #painted: Projection | null = null;
  #count = 0;

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
    canvas.style.transformOrigin = "0 0";
  }

  resize({ width, height }: Size, pixelRatio: number): void {
    this.#pixelRatio = pixelRatio;
    this.#canvas.width = Math.round(width * pixelRatio);
    this.#canvas.height = Math.round(height * pixelRatio);
    this.#painted = null;
  }

  invalidate(): void {
    this.#painted = null;
  }

  /** Whether it shows what it should, and crisp; otherwise it wants to be shown again when the camera rests. */
  show({ camera, target, isMoving, opacity }: SheetFrame, paint: Paint): boolean {
    if (this.#painted === null) this.#paint(target, paint);
    else if (!isSameCamera(this.#painted, camera) && (!isMoving || this.#count <= FEW)) this.#paint(camera, paint);
    const { scale, dx, dy } = transformBetween(this.#painted ?? camera, camera);
    const isCrisp = scale === 1 && dx === 0 && dy === 0;
    this.#canvas.style.transform = isCrisp ? "" : `translate(${dx}px, ${dy}px) scale(${scale})`;
    this.#canvas.style.opacity = opacity >= 1 ? "" : opacity.toFixed(3);
    return isCrisp;
  }

  /** Until it is shown again. */
  hide(): void {
    this.#canvas.style.opacity = "0";
  }

  #paint(camera: Projection, paint: Paint): void {
    const context = this.#context;
    this.#painted = camera;
    if (context === null) return;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    context.setTransform(this.#pixelRatio, 0, 0, this.#pixelRatio, 0, 0);
    this.#count = paint(context, camera);
  }
}
