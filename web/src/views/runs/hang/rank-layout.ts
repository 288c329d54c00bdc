// Where ranks stand in the picture of a hang, and which groups wait for which. Pure.

import type { GroupRow, HangReport, RankState, StalledGroup } from "../../../api/generated.ts";

/** Numbers of calls are written into cells of at least this width. */
export const WRITTEN_FROM_PX = 26;
const CELL_PX = { most: 34, least: 7 };
/** From this many ranks on, the cells of a kind of groups wrap to lines. */
const MOST_IN_LINE = 64;
const LINE_GAP_PX = 1;
const ROW_GAP_PX = 26;

export interface RankLayout {
  readonly cellPx: number;
  /** Where each row begins, and where the last one ends. */
  readonly tops: readonly number[];
  /** Rows of many ranks with nothing pending are only named. */
  readonly isFolded: readonly boolean[];
  /** Ranks in one line of cells. */
  readonly perLine: number;
  readonly lines: number;
  readonly height: number;
  readonly left: number;
}

/** All kinds of groups below one another, each with all ranks at the same places. `isIdle`: nothing is pending in the row. */
export function layoutRanks(rankCount: number, isIdle: readonly boolean[], width: number, left: number): RankLayout {
  const room = Math.max(1, width - left);
  const perLine =
    rankCount <= MOST_IN_LINE && room / rankCount >= CELL_PX.least
      ? Math.max(1, rankCount)
      : Math.max(8, Math.min(MOST_IN_LINE, 8 * Math.floor(room / CELL_PX.least / 8)));
  const lines = Math.ceil(rankCount / perLine);
  const wanted = lines > 1 ? 14 : CELL_PX.most;
  const cellPx = Math.max(CELL_PX.least, Math.min(wanted, Math.floor(room / perLine)));
  const isFolded = isIdle.map((idle) => idle && lines > 1);
  const tops = [0];
  for (const folded of isFolded)
    tops.push((tops.at(-1) ?? 0) + ROW_GAP_PX + (folded ? 0 : lines * (cellPx + LINE_GAP_PX)));
  return { cellPx, perLine, lines, tops, isFolded, left, height: tops.at(-1) ?? 0 };
}

/** Top left corner of a cell. */
export function placeOf(layout: RankLayout, row: number, at: number): { readonly x: number; readonly y: number } {
  const { cellPx, perLine, tops, left } = layout;
  return {
    x: left + (at % perLine) * cellPx,
    y: (tops[row] ?? 0) + ROW_GAP_PX - 6 + Math.floor(at / perLine) * (cellPx + LINE_GAP_PX),
  };
}

/** The cell at a point; null: none. */
export function cellAt(
  layout: RankLayout,
  x: number,
  y: number,
  rankCount: number,
): { readonly row: number; readonly at: number } | null {
  const row = layout.tops.findLastIndex((top) => top <= y);
  if (row < 0 || row >= layout.isFolded.length || layout.isFolded[row]) return null;
  const column = Math.floor((x - layout.left) / layout.cellPx);
  const line = Math.floor((y - (layout.tops[row] ?? 0) - (ROW_GAP_PX - 6)) / (layout.cellPx + LINE_GAP_PX));
  const at = line * layout.perLine + column;
  const isInside = column >= 0 && column < layout.perLine && line >= 0 && line < layout.lines && at < rankCount;
  return isInside ? { row, at } : null;
}

/** Whether groups are blocks of neighboring ranks, so that a line can separate them. */
export function hasBlocks({ group }: GroupRow): boolean {
  const groups = group.filter((one) => one !== null);
  let changes = 0;
  for (let at = 1; at < groups.length; at += 1) if (groups[at] !== groups[at - 1]) changes += 1;
  return groups.length > 0 && changes > 0 && changes <= groups.length / 2;
}

export function stateOf(report: HangReport, row: GroupRow, at: number): RankState | null {
  const place = row.state[at];
  return place === null || place === undefined ? null : (report.states[place] ?? null);
}

/** What a cell shows: a rank that others wait for may itself only wait elsewhere. */
export type CellState = RankState | "held";

export function cellState(
  report: HangReport,
  row: GroupRow,
  at: number,
  guilty: ReadonlySet<number>,
): CellState | null {
  const state = stateOf(report, row, at);
  const rank = report.ranks[at];
  const isHeld = state === "absent" && rank !== undefined && !guilty.has(rank) && waitsElsewhere(report, row, at);
  return isHeld ? "held" : state;
}

function waitsElsewhere(report: HangReport, row: GroupRow, at: number): boolean {
  return report.rows.some((other) => other !== row && stateOf(report, other, at) === "waiting");
}

/** Whether no rank has a pending call in groups of this kind. */
export function isIdleRow(report: HangReport, row: GroupRow): boolean {
  return row.state.every((_, at) => [null, "clear"].includes(stateOf(report, row, at)));
}

/** `0–2, 5`; many are counted. */
export function formatRanks(ranks: readonly number[], most = 6): string {
  const spans: [number, number][] = [];
  for (const rank of ranks) {
    const last = spans.at(-1);
    if (last && rank === last[1] + 1) last[1] = rank;
    else spans.push([rank, rank]);
  }
  const words = spans.slice(0, most).map(([low, high]) => (low === high ? `${low}` : `${low}–${high}`));
  return words.join(", ") + (spans.length > most ? " …" : "");
}

/** Groups of one kind that wait equally far from the cause. */
export interface WaitingKind {
  readonly key: string;
  readonly name: string;
  readonly groups: number;
  readonly call: string;
  readonly waiting: readonly number[];
  readonly missing: readonly number[];
}

/** The first cause's groups, then the groups that wait for them, and so on. */
export function layerStalls(stalled: readonly StalledGroup[]): readonly (readonly WaitingKind[])[] {
  const depths = new Map<number, number>();
  const depthOf = (at: number, seen: ReadonlySet<number>): number => {
    const cached = depths.get(at);
    if (cached !== undefined) return cached;
    const causes = (stalled[at]?.waits_for ?? []).filter((cause) => !seen.has(cause));
    const below = new Set([...seen, at]);
    const depth = causes.length === 0 ? 0 : 1 + Math.min(...causes.map((cause) => depthOf(cause, below)));
    if (seen.size === 0) depths.set(at, depth);
    return depth;
  };
  const layers: Map<string, StalledGroup[]>[] = [];
  stalled.forEach((group, at) => {
    const depth = depthOf(at, new Set());
    layers[depth] ??= new Map();
    const kind = group.description ?? group.group;
    const layer = layers[depth];
    layer.set(kind, [...(layer.get(kind) ?? []), group]);
  });
  return layers
    .filter((layer) => layer !== undefined)
    .map((layer) => [...layer].map(([name, groups]) => joinKind(name, groups)));
}

function joinKind(name: string, groups: readonly StalledGroup[]): WaitingKind {
  const [first] = groups;
  const unite = (of: (group: StalledGroup) => readonly number[]) =>
    [...new Set(groups.flatMap(of))].toSorted((a, b) => a - b);
  const call = [first?.collective ?? "collective", first?.sequence ?? null].filter((part) => part !== null).join(" ");
  return {
    key: `${name} ${first?.group ?? ""}`,
    name: groups.length === 1 && first && first.description ? `${name} (group ${first.group})` : name,
    groups: groups.length,
    call,
    waiting: unite((group) => group.waiting),
    missing: unite((group) => group.missing),
  };
}
