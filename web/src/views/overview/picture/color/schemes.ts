// The colors of numbers: schemes whose lightness rises evenly from dark to light, so that they can be read without hue.
// None has rose in it: that color means out of service.

import type { PackedColor } from "../../../../layers/squares/marks.ts";
import type { NumberScheme } from "../../../../state/color.ts";

/** At equal distances. Viridis after van der Walt and Smith, cividis after Nuñez et al., mako after Waskom, blues after Brewer. */
const STOPS: Readonly<Record<NumberScheme, readonly PackedColor[]>> = {
  viridis: [0x440154, 0x472c7a, 0x3b518b, 0x2c718e, 0x21908d, 0x27ad81, 0x5cc863, 0xaadc32, 0xfde725],
  cividis: [0x00224e, 0x123570, 0x3b496c, 0x575d6d, 0x707173, 0x8a8678, 0xa59c74, 0xc3b369, 0xe1cc55, 0xfee838],
  mako: [0x231526, 0x35264c, 0x403a75, 0x3d5296, 0x366da0, 0x3487a6, 0x35a1ab, 0x43bbad, 0x6cd3ad, 0xade3c0, 0xdef5e5],
  blues: [0x08306b, 0x08519c, 0x2171b5, 0x4292c6, 0x6baed6, 0x9ecae1, 0xc6dbef, 0xdeebf7],
  greys: [0x3d434b, 0x5d646e, 0x7f8792, 0xa2a9b3, 0xc6ccd3, 0xeceff2],
};

/** The share of each scheme that is left out at its dark end: on a dark ground what is hardly used must be seen, too. */
const DARKEST = 0.15;

/** Steps of a ramp: more than an eye can tell apart. */
export const RAMP_STEPS = 256;

/** `steps` colors from the low end to the high one. */
export function makeRamp(scheme: NumberScheme, isReversed: boolean, steps = RAMP_STEPS): Uint32Array {
  const ramp = new Uint32Array(steps);
  for (let step = 0; step < steps; step += 1) {
    const ratio = steps === 1 ? 1 : step / (steps - 1);
    ramp[step] = mixStops(STOPS[scheme], DARKEST + (1 - DARKEST) * (isReversed ? 1 - ratio : ratio));
  }
  return ramp;
}

function mixStops(stops: readonly PackedColor[], ratio: number): PackedColor {
  const position = ratio * (stops.length - 1);
  const index = Math.min(Math.floor(position), stops.length - 2);
  const from = stops[index] ?? 0;
  const to = stops[index + 1] ?? from;
  const mix = (shift: number) => {
    const start = (from >> shift) & 255;
    return Math.round(start + (((to >> shift) & 255) - start) * (position - index)) << shift;
  };
  return mix(16) | mix(8) | mix(0);
}
