// Where rows lie: few rows get room for their bands, many are as low as can be read and are scrolled. Pure.

import type { MareyRow } from "../../../api/marey.ts";
import type { RowPlaces } from "../../../layers/marey/marks.ts";

interface Pitch {
  readonly least: number;
  readonly most: number;
  /** Share of what is to be divided. */
  readonly weight: number;
  /** Of the pitch: the lane; the rest is for bands. */
  readonly lane: number;
}

/** Page pixels, by depth: stages, ranks, lanes. */
const PITCHES: readonly Pitch[] = [
  { least: 34, most: 150, weight: 1, lane: 0.3 },
  { least: 22, most: 84, weight: 0.8, lane: 0.45 },
  { least: 16, most: 40, weight: 0.5, lane: 0.62 },
];
const MOST_LANE = 34;
const LEAST_LANE = 9;
/** Above the first row. */
const MARGIN = 14;

export interface PlacedRows extends RowPlaces {
  readonly pitch: Float32Array;
  /** Of all rows. */
  readonly total: number;
}

export function placeRows(rows: readonly Pick<MareyRow, "depth">[], heightPx: number): PlacedRows {
  const pitches = rows.map(({ depth }) => PITCHES[Math.min(depth, PITCHES.length - 1)] ?? (PITCHES[0] as Pitch));
  const weight = pitches.reduce((sum, each) => sum + each.weight, 0);
  const unit = (heightPx - 2 * MARGIN) / Math.max(1, weight);
  const [top, height, pitch] = [0, 0, 0].map(() => new Float32Array(rows.length)) as [
    Float32Array,
    Float32Array,
    Float32Array,
  ];
  let y = MARGIN;
  pitches.forEach((each, at) => {
    const room = Math.min(each.most, Math.max(each.least, unit * each.weight));
    const lane = Math.min(MOST_LANE, Math.max(LEAST_LANE, room * each.lane));
    pitch[at] = room;
    height[at] = lane;
    top[at] = Math.round(y + Math.min((room - lane) / 2, MOST_LANE));
    y += room;
  });
  return { top, height, pitch, total: Math.ceil(y + MARGIN) };
}

/** The row whose lane holds a place, or null between lanes. */
export function findLane(rows: RowPlaces, y: number, slackPx = 2): number | null {
  for (let row = 0; row < rows.top.length; row += 1) {
    const top = rows.top[row] ?? 0;
    if (y >= top - slackPx && y <= top + (rows.height[row] ?? 0) + slackPx) return row;
  }
  return null;
}

/** Of a row whose rank no row above it names, but the first of them: lanes of many ranks are called alike. */
export function rankToName(rows: readonly Pick<MareyRow, "depth" | "rank">[], at: number): string | null {
  const [row, above] = [rows[at], rows[at - 1]];
  if (row === undefined || row.depth < 2 || row.rank === null || row.rank === above?.rank) return null;
  return `rank ${row.rank}`;
}

/** What the link writes for a row that is opened: a stage, or a rank. */
export function keyOfRow({ depth, stage, rank }: Pick<MareyRow, "depth" | "stage" | "rank">): string | null {
  if (depth === 0 && stage !== null) return String(stage);
  return rank === null ? null : `r${rank}`;
}
