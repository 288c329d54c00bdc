import { describe, expect, it } from "vitest";
import { findClosest } from "../../../../base/color-vision.ts";
import { colorNames, NAME_PALETTES, NO_COLOR, ownNameScheme } from "./name-color.ts";

const makeNames = (prefix: string, count: number) => [
  null,
  ...Array.from({ length: count }, (_, index) => `${prefix}-${index}`),
];

/** Colors by name. */
function colorAll(names: readonly (string | null)[], scheme: "safe" | "many") {
  const colors = colorNames(names, scheme);
  return new Map(names.map((name, code) => [name, colors[code]]));
}

describe("colors of names", () => {
  it("do not depend on the order or the code of names", () => {
    const names = makeNames("user", 12);
    const turned = [null, ...names.slice(1).reverse()];
    expect(colorAll(turned, "many")).toEqual(colorAll(names, "many"));
    expect(colorNames(names, "many")[0]).toBe(NO_COLOR);
  });

  it("are all different where there are enough of them", () => {
    for (const scheme of ["safe", "many"] as const) {
      const size = NAME_PALETTES[scheme].length;
      for (const prefix of ["user", "project", "team"]) {
        expect(new Set(colorAll(makeNames(prefix, size), scheme).values()).size).toBe(size + 1);
      }
    }
  });

  it("stay when another name comes, but for the few that must give way to it", () => {
    let changed = 0;
    let all = 0;
    for (let round = 0; round < 100; round += 1) {
      const names = makeNames(`group-${round}`, 15);
      const before = colorAll(names, "many");
      const after = colorAll([...names, `newcomer-${round}`], "many");
      for (const name of names.slice(1)) {
        all += 1;
        if (before.get(name) !== after.get(name)) changed += 1;
      }
    }
    expect(changed / all).toBeLessThan(0.02);
  });

  it("come from the letters alone where there are more names than colors", () => {
    const few = colorAll(makeNames("user", 100), "many");
    const more = colorAll(makeNames("user", 10_000), "many");
    for (const [name, color] of few) expect(more.get(name)).toBe(color);
    expect(new Set(more.values()).size).toBe(NAME_PALETTES.many.length + 1);
  });

  it("are those that everybody can tell apart as long as they suffice", () => {
    const size = NAME_PALETTES.safe.length;
    expect(ownNameScheme("project", makeNames("project", size))).toBe("safe");
    expect(ownNameScheme("project", makeNames("project", size + 1))).toBe("many");
    expect(ownNameScheme("partition", makeNames("partition", 100))).toBe("safe");
  });

  it("never look like out of service", () => {
    const reds = [...NAME_PALETTES.many, ...NAME_PALETTES.safe].filter((color) => {
      const [red, green, blue] = [color >> 16, (color >> 8) & 255, color & 255];
      return red > 190 && green < 125 && blue > 90 && blue < 170;
    });
    expect(reds).toEqual([]);
  });

  it("of the safe scheme are distinguishable for color-blind readers", () => {
    for (const vision of ["usual", "protanopia", "deuteranopia", "tritanopia"] as const) {
      expect(findClosest(NAME_PALETTES.safe, vision)).toBeGreaterThan(0.13);
    }
  });
});
