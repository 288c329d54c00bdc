// The color of a name: the same in every view, on every day, in every browser, since it depends on nothing else.

import type { PackedColor } from "../../../../layers/squares/marks.ts";

/** Degrees. The part of the circle around rose is left out: that color means out of service. */
const FIRST_HUE = 45;
const HUE_SPAN = 300;
const HUES = 20;
const LIGHTNESSES = [0.66, 0.76, 0.56] as const;
const CHROMA = 0.125;

export function nameColor(name: string): PackedColor {
  const hash = hashName(name);
  const hue = FIRST_HUE + ((hash % HUES) / HUES) * HUE_SPAN;
  const lightness = LIGHTNESSES[Math.floor(hash / HUES) % LIGHTNESSES.length] ?? LIGHTNESSES[0];
  return fromOklch(lightness, CHROMA, hue);
}

/** FNV-1a with a final mix, so that names that differ in the last digit differ in all bits. */
function hashName(name: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < name.length; index += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
}

/** Björn Ottosson's OKLab, in which equal steps look equally large. */
export function fromOklch(lightness: number, chroma: number, hueDegrees: number): PackedColor {
  const hue = (hueDegrees * Math.PI) / 180;
  const a = chroma * Math.cos(hue);
  const b = chroma * Math.sin(hue);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const red = toByte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s);
  const green = toByte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s);
  const blue = toByte(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s);
  return (red << 16) | (green << 8) | blue;
}

/** Linear light 0–1 to the sRGB value 0–255; what the screen cannot show is clamped. */
function toByte(linear: number): number {
  const clamped = Math.min(1, Math.max(0, linear));
  const encoded = clamped <= 0.0031308 ? 12.92 * clamped : 1.055 * clamped ** (1 / 2.4) - 0.055;
  return Math.round(encoded * 255);
}
