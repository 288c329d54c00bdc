// The canvas of the squares: when it is redrawn, and when the last drawing is only transformed. If drawing keeps up
// with the screen, every frame is drawn. If not (no GPU, very many units), the last drawing is moved and scaled with
// the camera, redrawn a few times a second, and drawn sharply when the camera rests.

import type { Marks, Places, Projection, SlotNames } from "../../../layers/squares/marks.ts";
import { OVERSCAN_PX, SquaresLayer } from "../../../layers/squares/squares-layer.ts";
import { isSameCamera, type Size, transformBetween } from "./camera.ts";

/** Drawing that takes longer than this, twice in a row, is seen to stutter. */
const SLOW_MS = 100;
/** How often a slow picture is drawn while the camera moves. */
const REDRAW_MS = 400;
/** How often it is asked whether the graphics card is done. */
const POLL_MS = 8;

export interface SquareFrame {
  readonly camera: Projection;
  readonly flown: number;
  /** Whether units are on their way: then every frame differs. */
  readonly movesUnits: boolean;
  /** Whether the camera is being moved by hand. */
  readonly isMoving: boolean;
  readonly now: number;
}

export class SquareSheet {
  readonly #canvas: HTMLCanvasElement;
  readonly #layer: SquaresLayer;
  #pixelRatio = 1;
  /** The frame that it was drawn for; null: must be redrawn. */
  #drawn: Projection | null = null;
  #drawnAt = Number.NEGATIVE_INFINITY;
  /** How many times in a row drawing took too long. */
  #slowTimes = 0;
  #isTimed = false;

  /** Throws where the browser cannot draw. */
  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
    this.#layer = new SquaresLayer(canvas);
    canvas.style.transformOrigin = `${OVERSCAN_PX}px ${OVERSCAN_PX}px`;
  }

  dispose(): void {
    this.#layer.dispose();
  }

  resize({ width, height }: Size, pixelRatio: number): void {
    this.#pixelRatio = pixelRatio;
    this.#canvas.width = Math.round((width + 2 * OVERSCAN_PX) * pixelRatio);
    this.#canvas.height = Math.round((height + 2 * OVERSCAN_PX) * pixelRatio);
    this.#drawn = null;
  }

  setPlaces(places: Places, names: SlotNames): void {
    this.#layer.setPlaces(places, names);
    this.#drawn = null;
  }

  setMarks(marks: Marks): void {
    this.#layer.setMarks(marks);
    this.#drawn = null;
  }

  /** Whether it is drawn as it should be; otherwise it wants to be shown again when the camera rests. */
  show({ camera, flown, movesUnits, isMoving, now }: SquareFrame, listVisible: () => Uint32Array | null): boolean {
    const isDue =
      this.#drawn === null || movesUnits || this.#slowTimes < 2 || !isMoving || now - this.#drawnAt > REDRAW_MS;
    const isOld = this.#drawn === null || movesUnits || !isSameCamera(this.#drawn, camera);
    if (isOld && isDue) {
      this.#layer.draw({ ...camera, pixelRatio: this.#pixelRatio, flown, visible: flown < 1 ? null : listVisible() });
      this.#drawn = camera;
      this.#drawnAt = now;
      this.#timeDrawing();
    }
    const { scale, dx, dy } = transformBetween(this.#drawn ?? camera, camera);
    const isCrisp = scale === 1 && dx === 0 && dy === 0;
    this.#canvas.style.transform = isCrisp ? "" : `translate(${dx}px, ${dy}px) scale(${scale})`;
    return isCrisp;
  }

  /** The page does not wait for the graphics card; how long it takes shows later. */
  #timeDrawing(): void {
    if (this.#isTimed) return;
    this.#isTimed = true;
    const start = performance.now();
    const isDone = this.#layer.watchDone();
    const poll = () => {
      this.#isTimed = !isDone();
      if (this.#isTimed) setTimeout(poll, POLL_MS);
      else this.#slowTimes = performance.now() - start > SLOW_MS ? this.#slowTimes + 1 : 0;
    };
    setTimeout(poll, POLL_MS);
  }
}
