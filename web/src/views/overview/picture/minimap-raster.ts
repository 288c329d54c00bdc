// The whole picture on few pixels, for the map: each pixel the mean of the units on it. Pure; cost grows with the units, not
// with what is drawn of each.

import { isSolid, type Marks, type Places } from "../../../layers/squares/marks.ts";
import type { Size } from "./camera.ts";

/** How much of a pixel a unit covers that is an outline or hatched. */
const OPEN_COVER = 0.35;

/** Page pixels of a map with the shape of the picture, within a largest size. */
export function mapSize(bounds: Size, most: Size): Size & { readonly scale: number } {
  const scale = Math.min(most.width / Math.max(1, bounds.width), most.height / Math.max(1, bounds.height));
  return {
    scale,
    width: Math.max(8, Math.round(bounds.width * scale)),
    height: Math.max(8, Math.round(bounds.height * scale)),
  };
}

/** RGBA rows, `width × height`; clear where there is no unit. `scale`: pixels per unit of the layout. */
export function rasterizeUnits(
  places: Places,
  marks: Marks,
  scale: number,
  { width, height }: Size,
): Uint8ClampedArray<ArrayBuffer> {
  const sums = new Float32Array(width * height * 4);
  for (let row = 0; row < places.size.length; row += 1) {
    const side = places.size[row] ?? 0;
    const opacity = marks.opacity[row] ?? 0;
    if (side <= 0 || opacity <= 0) continue;
    const weight = opacity * (isSolid(marks.shape[row]) ? 1 : OPEN_COVER);
    const color = marks.color[row] ?? 0;
    const left = Math.min(width - 1, Math.floor((places.x[row] ?? 0) * scale));
    const top = Math.min(height - 1, Math.floor((places.y[row] ?? 0) * scale));
    // At least a pixel, but never touching the next one.
    const last = Math.max(0, Math.floor(side * scale) - 1);
    for (let y = top; y <= Math.min(height - 1, top + last); y += 1) {
      for (let x = left; x <= Math.min(width - 1, left + last); x += 1) {
        addTo(sums, (y * width + x) * 4, color, weight);
      }
    }
  }
  return averagePixels(sums);
}

function addTo(sums: Float32Array, at: number, color: number, weight: number): void {
  sums[at] = (sums[at] ?? 0) + (color >> 16) * weight;
  sums[at + 1] = (sums[at + 1] ?? 0) + ((color >> 8) & 255) * weight;
  sums[at + 2] = (sums[at + 2] ?? 0) + (color & 255) * weight;
  sums[at + 3] = (sums[at + 3] ?? 0) + weight;
}

function averagePixels(sums: Float32Array): Uint8ClampedArray<ArrayBuffer> {
  const pixels = new Uint8ClampedArray(sums.length);
  for (let at = 0; at < sums.length; at += 4) {
    const weight = sums[at + 3] ?? 0;
    if (weight === 0) continue;
    for (let channel = 0; channel < 3; channel += 1) pixels[at + channel] = (sums[at + channel] ?? 0) / weight;
    pixels[at + 3] = Math.min(1, weight) * 255;
  }
  return pixels;
}
