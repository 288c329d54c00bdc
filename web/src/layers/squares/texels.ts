// Units as texels: one RGBA float texel per slot, in rows of a fixed width. Pure; the layer uploads them.

import type { Marks, Places, SlotNames } from "./marks.ts";

/** Known to the vertex shader. */
export const TEXTURE_WIDTH = 1024;
const CHANNELS = 4;

/** As many whole rows as the slots need; at least one, since a texture has a size. */
export function countTextureRows(slots: number): number {
  return Math.max(1, Math.ceil(slots / TEXTURE_WIDTH));
}

function makeTexels(slots: number): Float32Array<ArrayBuffer> {
  return new Float32Array(countTextureRows(slots) * TEXTURE_WIDTH * CHANNELS);
}

/** x, y, size, unused. */
export function packPlaces({ x, y, size }: Places): Float32Array<ArrayBuffer> {
  const texels = makeTexels(size.length);
  for (let slot = 0; slot < size.length; slot += 1) {
    const at = slot * CHANNELS;
    texels[at] = x[slot] ?? 0;
    texels[at + 1] = y[slot] ?? 0;
    texels[at + 2] = size[slot] ?? 0;
  }
  return texels;
}

/** Color as one number below 2²⁴, which a float holds exactly; shape; opacity; unused. */
export function packMarks({ color, shape, opacity }: Marks): Float32Array<ArrayBuffer> {
  const texels = makeTexels(color.length);
  for (let slot = 0; slot < color.length; slot += 1) {
    const at = slot * CHANNELS;
    texels[at] = color[slot] ?? 0;
    texels[at + 1] = shape[slot] ?? 0;
    texels[at + 2] = opacity[slot] ?? 0;
  }
  return texels;
}

/** Where squares are on their way from `from` to `to`; a flight that is cut short goes on from there. */
export function mixTexels(from: Float32Array, to: Float32Array, ratio: number): Float32Array<ArrayBuffer> {
  const mixed = new Float32Array(to.length);
  for (let at = 0; at < to.length; at += 1) {
    const start = from[at] ?? 0;
    mixed[at] = start + ((to[at] ?? 0) - start) * ratio;
  }
  return mixed;
}

/**
 * The places of units in the order of a newer snapshot: found by name, since rows shift when units come and go. New ones
 * start at size 0 where they will be. Nothing by name is kept between two flights: at 100,000 units it would weigh more
 * than all else the layer has.
 */
export function carryPlaces(
  texels: Float32Array,
  before: SlotNames,
  after: SlotNames,
  next: Float32Array,
): Float32Array<ArrayBuffer> {
  if (texels.length === next.length && hasSameNames(before, after)) return new Float32Array(texels);
  const carried = new Float32Array(next);
  const slotOf = indexNames(before);
  for (let slot = 0; slot < after.codes.length; slot += 1) {
    const name = after.names[after.codes[slot] ?? 0] ?? null;
    const old = name === null ? undefined : slotOf.get(name);
    const at = slot * CHANNELS;
    if (old === undefined) carried[at + 2] = 0;
    else carried.set(texels.subarray(old * CHANNELS, old * CHANNELS + CHANNELS), at);
  }
  return carried;
}

/** Another arrangement of the same units is the usual case, and needs no names at all. */
function hasSameNames(before: SlotNames, after: SlotNames): boolean {
  if (before === after) return true;
  if (before.codes.length !== after.codes.length) return false;
  return after.codes.every((code, slot) => {
    const name = after.names[code] ?? null;
    return name !== null && name === before.names[before.codes[slot] ?? 0];
  });
}

function indexNames({ codes, names }: SlotNames): ReadonlyMap<string, number> {
  const slotOf = new Map<string, number>();
  codes.forEach((code, slot) => {
    const name = names[code] ?? null;
    if (name !== null) slotOf.set(name, slot);
  });
  return slotOf;
}
