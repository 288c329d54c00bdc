import { describe, expect, it } from "vitest";
import { attributeOfId, findPlace, PALETTE, paletteId, SQUARES } from "./places.ts";

const IDS = ["project 1", "user 1"];
const over = (id: string) => ({ id, rect: { top: 100, height: 40 } });

describe("the place of a dragged attribute", () => {
  it("is before a layer in its upper half and after it in its lower half", () => {
    expect(findPlace(IDS, { top: 95, height: 20 }, over("user 1"))).toBe(1);
    expect(findPlace(IDS, { top: 125, height: 20 }, over("user 1"))).toBe(2);
    expect(findPlace(IDS, { top: 95, height: 20 }, over("project 1"))).toBe(0);
  });

  it("is innermost over the squares, and nowhere over the palette or outside", () => {
    expect(findPlace(IDS, { top: 0, height: 20 }, over(SQUARES))).toBe(2);
    expect(findPlace(IDS, { top: 0, height: 20 }, over(PALETTE))).toBeNull();
    expect(findPlace(IDS, { top: 0, height: 20 }, null)).toBeNull();
    expect(findPlace(IDS, { top: 0, height: 20 }, over("node 1"))).toBeNull();
  });

  it("tells attributes of the palette from layers", () => {
    expect(attributeOfId(paletteId("machine_type"))).toBe("machine_type");
    expect(attributeOfId("machine_type 1")).toBeNull();
  });
});
