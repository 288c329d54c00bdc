import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SHAPES } from "../../../layers/squares/marks.ts";
import {
  centerOn,
  fitCamera,
  showsAll,
  toLayout,
  transformBetween,
  windowOf,
  zoomCamera,
  zoomToBox,
} from "./camera.ts";
import { mapSize, rasterizeUnits } from "./minimap-raster.ts";

const viewport = { width: 800, height: 600 };
const length = fc.double({ min: 2, max: 3000, noNaN: true });
const sizes = fc.record({ width: length, height: length });
const ratio = fc.double({ min: 0, max: 1, noNaN: true });

describe("the window of the map", () => {
  it("is hidden while everything is visible", () => {
    fc.assert(
      fc.property(sizes, (bounds) => {
        expect(showsAll(fitCamera(bounds, viewport), viewport, bounds)).toBe(true);
      }),
    );
    const bounds = { width: 200, height: 100 };
    const fitted = fitCamera(bounds, viewport);
    expect(showsAll(zoomCamera(fitted, 2, 400, 300, fitted), viewport, bounds)).toBe(false);
  });

  it("has in its middle what it was dragged to", () => {
    fc.assert(
      fc.property(sizes, ratio, ratio, fc.double({ min: 1, max: 20, noNaN: true }), (bounds, x, y, by) => {
        const fitted = fitCamera(bounds, viewport);
        const camera = centerOn({ ...fitted, scale: fitted.scale * by }, x * bounds.width, y * bounds.height, viewport);
        const window = windowOf(camera, viewport);
        expect(window.left + window.width / 2).toBeCloseTo(x * bounds.width, 4);
        expect(window.top + window.height / 2).toBeCloseTo(y * bounds.height, 4);
      }),
    );
  });

  it("holds the whole of a group that is zoomed to", () => {
    fc.assert(
      fc.property(sizes, ratio, ratio, ratio, ratio, (bounds, left, top, wide, high) => {
        const box = {
          left: left * bounds.width * 0.5,
          top: top * bounds.height * 0.5,
          width: Math.max(1, wide * bounds.width * 0.5),
          height: Math.max(1, high * bounds.height * 0.5),
        };
        const fitted = fitCamera(bounds, viewport);
        const window = windowOf(zoomToBox(box, viewport, fitted), viewport);
        expect(window.left).toBeLessThanOrEqual(box.left + 1e-6);
        expect(window.top).toBeLessThanOrEqual(box.top + 1e-6);
        expect(window.left + window.width).toBeGreaterThanOrEqual(box.left + box.width - 1e-6);
        expect(window.top + window.height).toBeGreaterThanOrEqual(box.top + box.height - 1e-6);
      }),
    );
  });
});

describe("what was painted for another camera", () => {
  it("lies where the new one would paint it", () => {
    const number = fc.double({ min: -500, max: 500, noNaN: true });
    const camera = fc.record({
      scale: fc.double({ min: 0.1, max: 50, noNaN: true }),
      offsetX: number,
      offsetY: number,
    });
    fc.assert(
      fc.property(camera, camera, number, number, (from, to, x, y) => {
        const { scale, dx, dy } = transformBetween(from, to);
        const [atX, atY] = toLayout(to, x * scale + dx, y * scale + dy);
        const [wasX, wasY] = toLayout(from, x, y);
        expect(atX).toBeCloseTo(wasX, 3);
        expect(atY).toBeCloseTo(wasY, 3);
      }),
    );
  });
});

describe("the map", () => {
  const marks = (color: number[], shape: number[] = color.map(() => SHAPES.filled)) => ({
    color: Uint32Array.from(color),
    shape: Uint8Array.from(shape),
    opacity: new Float32Array(color.length).fill(1),
  });

  it("has the shape of the picture and fits its corner", () => {
    fc.assert(
      fc.property(sizes, (bounds) => {
        const { width, height } = mapSize(bounds, { width: 176, height: 128 });
        expect(width).toBeLessThanOrEqual(176);
        expect(height).toBeLessThanOrEqual(128);
      }),
    );
  });

  it("mixes the colors of units that share a pixel, and leaves clear what has none", () => {
    const places = { x: Float32Array.of(0, 1, 8), y: Float32Array.of(0, 1, 8), size: Float32Array.of(1, 1, 0) };
    const pixels = rasterizeUnits(places, marks([0xff0000, 0x0000ff, 0xffffff]), 0.25, { width: 4, height: 4 });
    expect([...pixels.subarray(0, 4)]).toEqual([128, 0, 128, 255]);
    expect([...pixels.subarray(4)].every((value) => value === 0)).toBe(true);
  });

  it("keeps the gaps between units where there is room for them", () => {
    const places = { x: Float32Array.of(0, 1.2), y: Float32Array.of(0, 0), size: Float32Array.of(1, 1) };
    const pixels = rasterizeUnits(places, marks([0x102030, 0x102030]), 5, { width: 11, height: 5 });
    const alpha = Array.from({ length: 11 }, (_, x) => pixels[x * 4 + 3]);
    expect(alpha).toEqual([255, 255, 255, 255, 255, 0, 255, 255, 255, 255, 255]);
  });

  it("shows an outline lighter than what is filled", () => {
    const places = { x: Float32Array.of(0), y: Float32Array.of(0), size: Float32Array.of(1) };
    const pixels = rasterizeUnits(places, marks([0xffffff], [SHAPES.free]), 1, { width: 1, height: 1 });
    expect(pixels[3]).toBeLessThan(128);
  });
});
