// Spans, bands and rows as texels: one RGBA float texel per slot, in rows of a fixed width. Pure; the layer only uploads.

import type { BandMarks, RowPlaces, SpanMarks } from "./marks.ts";

/** Known to the vertex shaders. */
export const TEXTURE_WIDTH = 1024;
/** Two rows of a band share one number below 2²⁴, which a float holds exactly. */
export const MOST_ROWS = 4096;

export function countTextureRows(slots: number): number {
  return Math.max(1, Math.ceil(slots / TEXTURE_WIDTH));
}

/** `order`: which value goes into each slot; null: the one of the same place. */
function pack(
  slots: number,
  channels: readonly [ArrayLike<number>, ArrayLike<number>, ArrayLike<number>, ArrayLike<number>],
  order: Uint32Array | null = null,
): Float32Array<ArrayBuffer> {
  const texels = new Float32Array(countTextureRows(slots) * TEXTURE_WIDTH * 4);
  channels.forEach((values, channel) => {
    if (order === null) {
      for (let slot = 0; slot < slots; slot += 1) texels[slot * 4 + channel] = values[slot] ?? 0;
    } else {
      for (let slot = 0; slot < slots; slot += 1) texels[slot * 4 + channel] = values[order[slot] ?? 0] ?? 0;
    }
  });
  return texels;
}

/** Start, end, row, fading length. */
export function packSpanPlaces({ count, startNs, endNs, row, softNs }: SpanMarks): Float32Array<ArrayBuffer> {
  return pack(count, [startNs, endNs, row, softNs]);
}

/** Styles and tiers share a number: tier × this + style. */
export const TIER_STEP = 8;

/** Color, style and tier, opacity, instance. */
export function packSpanMarks({ count, color, style, tier, opacity, instance }: SpanMarks): Float32Array<ArrayBuffer> {
  const shape = new Float32Array(count);
  for (let slot = 0; slot < count; slot += 1) shape[slot] = (tier[slot] ?? 0) * TIER_STEP + (style[slot] ?? 0);
  return pack(count, [color, shape, opacity, instance]);
}

export function packBandPlaces(bands: BandMarks, order: Uint32Array): Float32Array<ArrayBuffer> {
  return pack(bands.count, [bands.fromStartNs, bands.fromEndNs, bands.toStartNs, bands.toEndNs], order);
}

/** Color, both rows, opacity, instance. */
export function packBandMarks(
  { count, color, fromRow, toRow, opacity, instance }: BandMarks,
  order: Uint32Array,
): Float32Array<ArrayBuffer> {
  const rows = new Float32Array(count);
  for (let slot = 0; slot < count; slot += 1) rows[slot] = (fromRow[slot] ?? 0) * MOST_ROWS + (toRow[slot] ?? 0);
  return pack(count, [color, rows, opacity, instance], order);
}

/** Top, height. */
export function packRows({ top, height }: RowPlaces): Float32Array<ArrayBuffer> {
  return pack(top.length, [top, height, [], []]);
}
