// The input of the squares layer for each unit: position, color, shape. Slots are fixed: slot = row of the snapshot.

/** Absence has a shape of its own. The numbers are known to the fragment shader. */
export const SHAPES = {
  filled: 0,
  /** An outline: nobody has it. */
  free: 1,
  /** Hatched with a border: nothing was heard of it lately. */
  stale: 2,
  /** Dashed: asked for, not there. */
  requested: 3,
  /** Dashed and filled: asked for, with a value to show. */
  requestedValue: 4,
  /** Hatched: there, but without a value. */
  missing: 5,
  /** Crossed out: out of service. Its color alone would not tell it from a value. */
  out: 6,
} as const;
export type Shape = keyof typeof SHAPES;

/** Whether a shape covers its square, so that there is something to write on. */
export function isSolid(shape: number | undefined): boolean {
  return shape === SHAPES.filled || shape === SHAPES.requestedValue || shape === SHAPES.out;
}

/** Places in the units of the layout; (x, y) is the upper left corner. A size of 0 is not drawn. */
export interface Places {
  readonly x: Float32Array;
  readonly y: Float32Array;
  readonly size: Float32Array;
}

/** Who is in which slot, as codes into a dictionary; code 0 has no name. Slots shift when units come and go, names stay. */
export interface SlotNames {
  readonly codes: Uint32Array;
  readonly names: readonly (string | null)[];
}

/** Small squares are rounded down to whole pixels: rounded up, some would touch and others not. */
const ROUNDED_BELOW_PX = 8;

/** The side of a square in whole pixels, as the vertex shader draws it. */
export function snapSide(side: number): number {
  return Math.max(1, side < ROUNDED_BELOW_PX ? Math.floor(side) : Math.round(side));
}

export const SNAP_SIDE_GLSL = `
float snapSide(float side) {
  return max(1.0, side < ${ROUNDED_BELOW_PX}.0 ? floor(side) : round(side));
}
`;

/** 0xrrggbb. */
export type PackedColor = number;

export interface Marks {
  readonly color: Uint32Array;
  /** Codes of `SHAPES`. */
  readonly shape: Uint8Array;
  /** 0–1. */
  readonly opacity: Float32Array;
}

/** From places in the layout to pixels of the page: `pixel = place × scale + offset`. */
export interface Projection {
  readonly scale: number;
  readonly offsetX: number;
  readonly offsetY: number;
}
