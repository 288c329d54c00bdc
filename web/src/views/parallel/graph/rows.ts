// Layout of rows: few rows have room for bands, many are as low as is readable and scroll. Pure.

import type { MareyRow } from "../../../api/marey.ts";
import type { RowPlaces } from "../../../layers/marey/marks.ts";

interface Pitch {
  readonly min: number;
  readonly max: number;
  /** Weight when the height is divided. */
  readonly weight: number;
  /** Share of the pitch for the lane; the rest is for bands. */
  readonly lane: number;
}

/** CSS pixels, by depth: stages, ranks, lanes. */
const PITCHES: readonly Pitch[] = [
  { min: 34, max: 150, weight: 1, lane: 0.3 },
  { min: 22, max: 84, weight: 0.8, lane: 0.45 },
  { min: 16, max: 40, weight: 0.5, lane: 0.62 },
];
const MAX_LANE = 34;
const MIN_LANE = 9;
/** Above the first row and below the last; less where the rows would just not fit. */
const [MIN_MARGIN, MARGIN] = [4, 14];

export interface PlacedRows extends RowPlaces {
  readonly pitch: Float32Array;
  /** Height of all rows. */
  readonly total: number;
}

export function placeRows(rows: readonly Pick<MareyRow, "depth">[], heightPx: number): PlacedRows {
  const pitches = rows.map(({ depth }) => PITCHES[Math.min(depth, PITCHES.length - 1)] ?? (PITCHES[0] as Pitch));
  const weight = pitches.reduce((sum, { weight: rowWeight }) => sum + rowWeight, 0);
  const least = pitches.reduce((sum, { min }) => sum + min, 0);
  const margin = Math.max(MIN_MARGIN, Math.min(MARGIN, Math.floor((heightPx - least) / 2)));
  const unit = (heightPx - 2 * margin) / Math.max(1, weight);
  const [top, height, pitch] = [0, 0, 0].map(() => new Float32Array(rows.length)) as [
    Float32Array,
    Float32Array,
    Float32Array,
  ];
  let y = margin;
  pitches.forEach((limits, at) => {
    const room = Math.min(limits.max, Math.max(limits.min, unit * limits.weight));
    const lane = Math.min(MAX_LANE, Math.max(MIN_LANE, room * limits.lane));
    pitch[at] = room;
    height[at] = lane;
    top[at] = Math.round(y + Math.min((room - lane) / 2, MAX_LANE));
    y += room;
  });
  return { top, height, pitch, total: Math.ceil(y + margin) };
}

/** The row whose lane contains `y`, or null between lanes. */
export function findLane(rows: RowPlaces, y: number, tolerancePx = 2): number | null {
  for (let row = 0; row < rows.top.length; row += 1) {
    const top = rows.top[row] ?? 0;
    if (y >= top - tolerancePx && y <= top + (rows.height[row] ?? 0) + tolerancePx) return row;
  }
  return null;
}

/** The rank before the label of the first lane of each rank: lanes of different ranks have the same names. */
export function findRankLabel(rows: readonly Pick<MareyRow, "depth" | "rank">[], at: number): string | null {
  const [row, above] = [rows[at], rows[at - 1]];
  if (row === undefined || row.depth < 2 || row.rank === null || row.rank === above?.rank) return null;
  return `rank ${row.rank}`;
}

/** The key of an expanded row in links: a stage, or a rank. */
export function keyOfRow({ depth, stage, rank }: Pick<MareyRow, "depth" | "stage" | "rank">): string | null {
  if (depth === 0 && stage !== null) return String(stage);
  return rank === null ? null : `r${rank}`;
}
