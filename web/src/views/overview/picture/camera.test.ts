import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fitCamera, mixCameras, revealSquare, toLayout, zoomCamera } from "./camera.ts";

const length = fc.double({ min: 1, max: 2000, noNaN: true });
const sizes = fc.record({ width: length, height: length });
const viewport = { width: 800, height: 600 };

describe("the camera", () => {
  it("fits everything, whatever its shape", () => {
    fc.assert(
      fc.property(sizes, (bounds) => {
        const { scale, offsetX, offsetY } = fitCamera(bounds, viewport);
        expect(offsetX).toBeGreaterThanOrEqual(0);
        expect(offsetY).toBeGreaterThanOrEqual(0);
        expect(offsetX + bounds.width * scale).toBeLessThanOrEqual(viewport.width + 1e-6);
        expect(offsetY + bounds.height * scale).toBeLessThanOrEqual(viewport.height + 1e-6);
      }),
    );
  });

  it("does not blow up a single unit", () => {
    expect(fitCamera({ width: 1, height: 1 }, viewport).scale).toBeLessThan(100);
  });

  it("keeps what is under the pointer there while zooming", () => {
    const fitted = fitCamera({ width: 100, height: 80 }, viewport);
    const factor = fc.double({ min: 0.01, max: 100, noNaN: true });
    fc.assert(
      fc.property(factor, fc.nat(800), fc.nat(600), (by, x, y) => {
        const before = toLayout(fitted, x, y);
        const after = toLayout(zoomCamera(fitted, by, x, y, fitted), x, y);
        expect(after[0]).toBeCloseTo(before[0], 6);
        expect(after[1]).toBeCloseTo(before[1], 6);
      }),
    );
  });

  it("ends where it flies to", () => {
    const from = { scale: 1, offsetX: 0, offsetY: 0 };
    const to = { scale: 3, offsetX: 10, offsetY: -5 };
    expect(mixCameras(from, to, 0)).toEqual(from);
    expect(mixCameras(from, to, 1)).toEqual(to);
  });

  it("moves only to show what is not visible", () => {
    const camera = { scale: 10, offsetX: 0, offsetY: 0 };
    expect(revealSquare(camera, 20, 20, viewport)).toBe(camera);
    expect(revealSquare(camera, 100, 20, viewport).offsetX).toBeLessThan(0);
    expect(revealSquare(camera, 20, -10, viewport).offsetY).toBeGreaterThan(0);
  });
});
