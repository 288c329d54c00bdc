import { describe, expect, it } from "vitest";
import { colorNames, NAME_PALETTES, NO_COLOR } from "./name-color.ts";

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

  it("never look like out of service", () => {
    const reds = [...NAME_PALETTES.many, ...NAME_PALETTES.safe].filter((color) => {
      const [red, green, blue] = [color >> 16, (color >> 8) & 255, color & 255];
      return red > 190 && green < 125 && blue > 90 && blue < 170;
    });
    expect(reds).toEqual([]);
  });

  it("that are called safe can be told apart by everybody", () => {
    const colors = NAME_PALETTES.safe.map(toLinear);
    let closest = Number.POSITIVE_INFINITY;
    for (const vision of VISIONS) {
      const seen = colors.map((color) => toOklab(multiply(vision, color)));
      seen.forEach((a, index) => {
        for (const b of seen.slice(0, index))
          closest = Math.min(closest, Math.hypot(...a.map((x, k) => x - (b[k] ?? 0))));
      });
    }
    expect(closest).toBeGreaterThan(0.13);
  });
});

type Row = readonly [number, number, number];
type Matrix = readonly [Row, Row, Row];

/** Seen by most people, and with full protanopia, deuteranopia, tritanopia: Machado, Oliveira and Fernandes 2009. */
const VISIONS: readonly Matrix[] = [
  [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
];

function multiply([a, b, c]: Matrix, [x, y, z]: Row): Row {
  const dot = ([p, q, r]: Row) => Math.min(1, Math.max(0, p * x + q * y + r * z));
  return [dot(a), dot(b), dot(c)];
}

function toLinear(color: number): Row {
  const channel = (shift: number) => {
    const value = ((color >> shift) & 255) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [channel(16), channel(8), channel(0)];
}

function toOklab([r, g, b]: Row): Row {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}
