// The distance between colors for readers with color blindness; palettes are tested with it.

type Row = readonly [number, number, number];
type Matrix = readonly [Row, Row, Row];

const GREY: Row = [0.2126, 0.7152, 0.0722];

/** Full protanopia, deuteranopia and tritanopia after Machado, Oliveira and Fernandes 2009; without any hue by luminance. */
export const VISIONS = {
  usual: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
  achromatopsia: [GREY, GREY, GREY],
} as const satisfies Record<string, Matrix>;

export type Vision = keyof typeof VISIONS;

/** The two most similar of these colors (0xrrggbb): their distance in OKLab, in which black and white are 1 apart. */
export function findClosest(colors: readonly number[], vision: Vision): number {
  const perceived = colors.map((color) => toOklab(multiply(VISIONS[vision], toLinear(color))));
  let closest = Number.POSITIVE_INFINITY;
  perceived.forEach((a, index) => {
    for (const b of perceived.slice(0, index))
      closest = Math.min(closest, Math.hypot(...a.map((x, k) => x - (b[k] ?? 0))));
  });
  return closest;
}

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
