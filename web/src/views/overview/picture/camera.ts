// Which part of the layout is on the page, and how large: fit, zoom to a point, pan. Pure.

import type { Projection } from "../../../layers/squares/marks.ts";

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Page pixels kept free around a picture that fits. */
const MARGIN_PX = 14;
/** A unit of a small cluster is not blown up beyond this, in page pixels. */
const LARGEST_FITTED_PX = 56;
const LARGEST_PX = 160;
/** How much smaller than fitting a picture may be. */
const SMALLEST_SHARE = 0.5;

/** The whole layout, centered along X, at the top. */
export function fitCamera(bounds: Size, viewport: Size): Projection {
  const scale = fitScale(bounds, viewport);
  return {
    scale,
    offsetX: Math.max(MARGIN_PX, (viewport.width - bounds.width * scale) / 2),
    offsetY: Math.max(MARGIN_PX, Math.min((viewport.height - bounds.height * scale) / 2, MARGIN_PX)),
  };
}

export function fitScale(bounds: Size, viewport: Size): number {
  const alongX = (viewport.width - 2 * MARGIN_PX) / Math.max(1, bounds.width);
  const alongY = (viewport.height - 2 * MARGIN_PX) / Math.max(1, bounds.height);
  return Math.max(0.01, Math.min(LARGEST_FITTED_PX, alongX, alongY));
}

/** The point (x, y) of the page stays where it is. */
export function zoomCamera(camera: Projection, factor: number, x: number, y: number, fitted: Projection): Projection {
  const least = fitted.scale * SMALLEST_SHARE;
  const scale = Math.min(Math.max(LARGEST_PX, fitted.scale), Math.max(least, camera.scale * factor));
  const ratio = scale / camera.scale;
  return { scale, offsetX: x - (x - camera.offsetX) * ratio, offsetY: y - (y - camera.offsetY) * ratio };
}

export function panCamera(camera: Projection, dx: number, dy: number): Projection {
  return { ...camera, offsetX: camera.offsetX + dx, offsetY: camera.offsetY + dy };
}

export function mixCameras(from: Projection, to: Projection, ratio: number): Projection {
  const mix = (a: number, b: number) => a + (b - a) * ratio;
  return {
    scale: mix(from.scale, to.scale),
    offsetX: mix(from.offsetX, to.offsetX),
    offsetY: mix(from.offsetY, to.offsetY),
  };
}

export function toLayout({ scale, offsetX, offsetY }: Projection, x: number, y: number): readonly [number, number] {
  return [(x - offsetX) / scale, (y - offsetY) / scale];
}

/** Moves as little as brings the square at (x, y) of the layout into sight. */
export function revealSquare(camera: Projection, x: number, y: number, viewport: Size): Projection {
  const left = x * camera.scale + camera.offsetX;
  const top = y * camera.scale + camera.offsetY;
  const dx = Math.max(MARGIN_PX - left, 0) || Math.min(viewport.width - MARGIN_PX - camera.scale - left, 0);
  const dy = Math.max(MARGIN_PX - top, 0) || Math.min(viewport.height - MARGIN_PX - camera.scale - top, 0);
  return dx === 0 && dy === 0 ? camera : panCamera(camera, dx, dy);
}
