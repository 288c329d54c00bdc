// The colors of names. A color is a hash of the name, so that it is the same in every view, every day and every
// browser. If there are no more names than colors, collisions are resolved: in the order of their hashes, each name
// takes the first free color of its own sequence. So a name changes its color only when a colliding name before it
// appears or disappears, and never by what is drawn or filtered.

import type { PackedColor } from "../../../../layers/squares/marks.ts";
import type { NameAttributeName } from "../../../../state/attributes.ts";
import type { NameScheme } from "../../../../state/color.ts";

/**
 * Chosen so that any two differ by at least 0.13 in OKLab, also as seen with protanopia, deuteranopia and tritanopia
 * (Machado et al. 2009), and each from the rose of what is out of service by 0.075.
 */
const SAFE: readonly PackedColor[] = [0xb3b6fd, 0x3c6a7e, 0xc48d25, 0x3eaca1, 0x8d6fdc, 0x3ff2bd, 0xfacb39, 0x7e5d07];

/** Degrees. The part of the circle around rose is left out. */
const FIRST_HUE = 45;
const HUE_SPAN = 300;
const HUES = 20;
const LIGHTNESSES = [0.66, 0.76, 0.56] as const;
const CHROMA = 0.125;

const MANY: readonly PackedColor[] = LIGHTNESSES.flatMap((lightness) =>
  Array.from({ length: HUES }, (_, hue) => fromOklch(lightness, CHROMA, FIRST_HUE + (hue / HUES) * HUE_SPAN)),
);

export const NAME_PALETTES: Readonly<Record<NameScheme, readonly PackedColor[]>> = { safe: SAFE, many: MANY };

/** Attributes that have few values on any cluster. */
const FEW_VALUED: readonly NameAttributeName[] = [
  "partition",
  "machine_type",
  "node_state",
  "workload_state",
  "workload_kind",
  "kind",
  "qos",
  "mig_profile",
  "allocation_source",
];

/** The colors that everybody can tell apart where they suffice for the cluster's names, whatever is drawn of it. */
export function ownNameScheme(attribute: NameAttributeName, names: readonly (string | null)[]): NameScheme {
  if (FEW_VALUED.includes(attribute)) return "safe";
  let count = 0;
  for (const name of names) if (name !== null) count += 1;
  return count <= SAFE.length ? "safe" : "many";
}

/** Stands for no color. */
export const NO_COLOR = 0xffffffff;

const colorCache = new WeakMap<readonly (string | null)[], Partial<Record<NameScheme, Uint32Array>>>();

/** By code; `NO_COLOR` for the missing. */
export function colorNames(names: readonly (string | null)[], scheme: NameScheme): Uint32Array {
  const byScheme = colorCache.get(names) ?? {};
  colorCache.set(names, byScheme);
  byScheme[scheme] ??= computeColors(names, NAME_PALETTES[scheme]);
  return byScheme[scheme];
}

function computeColors(names: readonly (string | null)[], palette: readonly PackedColor[]): Uint32Array {
  const colors = new Uint32Array(names.length).fill(NO_COLOR);
  const hashes = Uint32Array.from(names, (name) => (name === null ? 0 : hashName(name)));
  const codes = names.flatMap((name, code) => (name === null ? [] : [code]));
  if (codes.length > palette.length) {
    for (const code of codes) colors[code] = palette[(hashes[code] ?? 0) % palette.length] ?? 0;
    return colors;
  }
  codes.sort((a, b) => (hashes[a] ?? 0) - (hashes[b] ?? 0) || ((names[a] ?? "") < (names[b] ?? "") ? -1 : 1));
  const isTaken = new Uint8Array(palette.length);
  for (const code of codes) {
    const place = findFree(isTaken, hashes[code] ?? 0);
    isTaken[place] = 1;
    colors[code] = palette[place] ?? 0;
  }
  return colors;
}

/** Goes on by a step of its own that shares no factor with the size: it comes to every place once. */
function findFree(isTaken: Uint8Array, hash: number): number {
  const size = isTaken.length;
  let step = 1 + (Math.floor(hash / size) % (size - 1));
  while (divisor(step, size) > 1) step = (step % (size - 1)) + 1;
  let place = hash % size;
  while (isTaken[place] === 1) place = (place + step) % size;
  return place;
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
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
function fromOklch(lightness: number, chroma: number, hueDegrees: number): PackedColor {
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
