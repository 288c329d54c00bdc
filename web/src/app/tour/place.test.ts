import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Box, placeCard } from "./place.ts";

const CARD = { width: 320, height: 200 };
const SCREEN = { width: 1280, height: 800 };

const targets: fc.Arbitrary<Box> = fc.record({
  left: fc.integer({ min: 0, max: 1200 }),
  top: fc.integer({ min: 0, max: 700 }),
  width: fc.integer({ min: 1, max: 1280 }),
  height: fc.integer({ min: 1, max: 800 }),
});

describe("a step's card", () => {
  it("stays inside the window", () => {
    fc.assert(
      fc.property(targets, (target) => {
        const { left, top } = placeCard(target, CARD, SCREEN);
        expect(left).toBeGreaterThanOrEqual(0);
        expect(top).toBeGreaterThanOrEqual(0);
        expect(left + CARD.width).toBeLessThanOrEqual(SCREEN.width);
        expect(top + CARD.height).toBeLessThanOrEqual(SCREEN.height);
      }),
    );
  });

  it("does not cover its target if there is space next to it", () => {
    expect(placeCard({ left: 0, top: 100, width: 220, height: 300 }, CARD, SCREEN).left).toBeGreaterThan(220);
    const right = placeCard({ left: 900, top: 100, width: 380, height: 600 }, CARD, SCREEN);
    expect(right.left + CARD.width).toBeLessThan(900);
    expect(placeCard({ left: 0, top: 48, width: 1280, height: 60 }, CARD, SCREEN).top).toBeGreaterThan(108);
  });
});
