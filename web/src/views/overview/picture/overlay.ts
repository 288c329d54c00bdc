// The pointer overlay, a few SVG elements over the canvases: the hovered square or group, the focused square, the box
// or lasso. Changing it repaints nothing else.

import type { Box } from "./camera.ts";

export interface OverlayElements {
  readonly hovered: SVGRectElement;
  readonly focused: SVGRectElement;
  readonly sketch: SVGPathElement;
}

export class Overlay {
  readonly #elements: OverlayElements;

  constructor(elements: OverlayElements) {
    this.#elements = elements;
  }

  hover(box: Box | null, gap: number): void {
    placeRect(this.#elements.hovered, box, gap);
  }

  focus(box: Box | null): void {
    placeRect(this.#elements.focused, box, 3);
  }

  /** Points in page pixels. */
  sketch(points: readonly (readonly [number, number])[]): void {
    const text = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L");
    this.#elements.sketch.setAttribute("d", text === "" ? "" : `M${text}Z`);
  }
}

function placeRect(rect: SVGRectElement, box: Box | null, gap: number): void {
  rect.style.display = box === null ? "none" : "";
  if (box === null) return;
  rect.setAttribute("x", String(box.left - gap));
  rect.setAttribute("y", String(box.top - gap));
  rect.setAttribute("width", String(Math.max(0, box.width + 2 * gap)));
  rect.setAttribute("height", String(Math.max(0, box.height + 2 * gap)));
  rect.setAttribute("rx", String(Math.min(6, box.width * 0.16 + gap)));
}
