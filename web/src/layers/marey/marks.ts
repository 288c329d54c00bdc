// What the Marey layer is given: spans on rows, and bands that join two of them. Times are relative to `baseNs`, so that a
// 32-bit float tells nanoseconds apart wherever in the trace the window lies.

/** The numbers are known to the fragment shader. */
export const SPAN_STYLES = {
  /** A rounded block as high as its lane. */
  block: 0,
  /** A thin bar in the middle of its lane: waiting, nothing is done. */
  thin: 1,
  /** Several spans drawn as one: striped. */
  merged: 2,
  /** An outline around what lies in it. */
  outline: 3,
} as const;

/** Which part of its lane a span takes: phases above what is sent meanwhile, both above what the device does meanwhile. */
export const TIERS = { whole: 0, upper: 1, lower: 2, top: 3, middle: 4 } as const;

/** By code of `TIERS`: where a tier begins and ends, of the lane's height. */
export const TIER_PLACES: readonly (readonly [from: number, to: number])[] = [
  [0, 1],
  [0, 0.72],
  [0.8, 1],
  [0, 0.44],
  [0.5, 0.74],
];

/** 0xrrggbb. */
export type PackedColor = number;

/** What is drawn of spans; waiting and working parts of one span are two marks. */
export interface SpanMarks {
  readonly count: number;
  readonly startNs: Float32Array;
  readonly endNs: Float32Array;
  readonly row: Uint16Array;
  /** How long the end fades out: from the median of the merged ones to the longest. */
  readonly softNs: Float32Array;
  readonly color: Uint32Array;
  /** Codes of `SPAN_STYLES`. */
  readonly style: Uint8Array;
  /** Codes of `TIERS`. */
  readonly tier: Uint8Array;
  readonly opacity: Float32Array;
  /** Marks of one operator instance over all rows share a number. */
  readonly instance: Float32Array;
}

export interface BandMarks {
  readonly count: number;
  readonly fromStartNs: Float32Array;
  readonly fromEndNs: Float32Array;
  readonly toStartNs: Float32Array;
  readonly toEndNs: Float32Array;
  readonly fromRow: Uint16Array;
  readonly toRow: Uint16Array;
  readonly color: Uint32Array;
  readonly opacity: Float32Array;
  readonly instance: Float32Array;
}

/** Where rows lie, in page pixels from the top of the drawing before it is scrolled. */
export interface RowPlaces {
  readonly top: Float32Array;
  readonly height: Float32Array;
}

export interface MareyFrame {
  /** Device pixels per page pixel. */
  readonly pixelRatio: number;
  /** Page pixels per nanosecond. */
  readonly scale: number;
  /** Where `baseNs` lies, in page pixels. */
  readonly offsetX: number;
  readonly offsetY: number;
  /** The instance that stands out; null: all are alike. */
  readonly lit: number | null;
}
