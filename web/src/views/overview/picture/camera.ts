// Which part of the layout is on the page, and how large: fit, zoom to a point or a group, pan, the window of a map. Pure.

import type { Projection } from "../../../layers/squares/marks.ts";

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** In the units of the layout, or in page pixels. */
export interface Box extends Size {
  readonly left: number;
  readonly top: number;
}

/** Page pixels kept free around a picture that fits. */
const MARGIN_PX = 10;
/** A unit of a small cluster is not blown up beyond this, in page pixels. */
const LARGEST_FITTED_PX = 56;
const LARGEST_PX = 160;
/** A unit of a group that is zoomed to is not blown up beyond this. */
const LARGEST_ZOOMED_PX = 72;
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

/** Moves as little as needed to show the square at (x, y) of the layout. */
export function revealSquare(camera: Projection, x: number, y: number, viewport: Size): Projection {
  const left = x * camera.scale + camera.offsetX;
  const top = y * camera.scale + camera.offsetY;
  const dx = Math.max(MARGIN_PX - left, 0) || Math.min(viewport.width - MARGIN_PX - camera.scale - left, 0);
  const dy = Math.max(MARGIN_PX - top, 0) || Math.min(viewport.height - MARGIN_PX - camera.scale - top, 0);
  return dx === 0 && dy === 0 ? camera : panCamera(camera, dx, dy);
}

/** A box of the layout as large as the page has room for, in the middle; never smaller than everything. */
export function zoomToBox(box: Box, viewport: Size, fitted: Projection): Projection {
  const scale = Math.max(fitted.scale, Math.min(LARGEST_ZOOMED_PX, fitScale(box, viewport)));
  return centerOn({ ...fitted, scale }, box.left + box.width / 2, box.top + box.height / 2, viewport);
}

/** A point of the layout comes to the middle of the page. */
export function centerOn({ scale }: Projection, x: number, y: number, viewport: Size): Projection {
  return { scale, offsetX: viewport.width / 2 - x * scale, offsetY: viewport.height / 2 - y * scale };
}

/** What of the layout is on the page, in its units; may reach beyond it. */
export function windowOf(camera: Projection, viewport: Size): Box {
  const [left, top] = toLayout(camera, 0, 0);
  return { left, top, width: viewport.width / camera.scale, height: viewport.height / camera.scale };
}

/** Whether the whole layout is visible, with a tolerance of half a unit. */
export function showsAll(camera: Projection, viewport: Size, bounds: Size): boolean {
  const { left, top, width, height } = windowOf(camera, viewport);
  return left <= 0.5 && top <= 0.5 && left + width >= bounds.width - 0.5 && top + height >= bounds.height - 0.5;
}

/** The page seen through another camera: how what was painted for `from` must be moved and stretched to lie as `to` does. */
export function transformBetween(from: Projection, to: Projection): { scale: number; dx: number; dy: number } {
  const scale = to.scale / from.scale;
  return { scale, dx: to.offsetX - from.offsetX * scale, dy: to.offsetY - from.offsetY * scale };
}

export function isSameCamera(a: Projection, b: Projection): boolean {
  return a.scale === b.scale && a.offsetX === b.offsetX && a.offsetY === b.offsetY;
}

/** Respects the system setting for reduced motion. */
export function prefersReducedMotion(): boolean {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}
