// What painters need of a 2D canvas, so that they can paint into an SVG document as well.

export type Pen = Pick<
  CanvasRenderingContext2D,
  | "beginPath"
  | "rect"
  | "roundRect"
  | "moveTo"
  | "lineTo"
  | "fill"
  | "stroke"
  | "fillText"
  | "measureText"
  | "save"
  | "restore"
  | "translate"
  | "rotate"
  | "font"
  | "fillStyle"
  | "strokeStyle"
  | "lineWidth"
  | "globalAlpha"
  | "textBaseline"
>;

/** Numbers in documents: a hundredth of a pixel is enough. */
export function short(value: number): string {
  return String(Math.round(value * 100) / 100);
}
