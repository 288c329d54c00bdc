// The layout of small multiples of many GPUs: one row per group, in as many blocks as are needed to stay readable. Few
// are plots, more are strips, thousands are cells. Pure.

export interface MultiplesGroup {
  readonly title: string;
  /** Indices of plots in the order of their columns; null: nobody there. */
  readonly slots: readonly (number | null)[];
}

export type Level = "plot" | "strip" | "cell";

export interface PlacedPlot {
  readonly plot: number;
  readonly left: number;
  readonly top: number;
}

export interface PlacedTitle {
  readonly title: string;
  readonly left: number;
  readonly middle: number;
}

export interface MultiplesLayout {
  readonly level: Level;
  readonly plotWidth: number;
  readonly plotHeight: number;
  readonly titleWidth: number;
  readonly plots: readonly PlacedPlot[];
  readonly titles: readonly PlacedTitle[];
  /** May be more than there is: the drawing is scrolled then. */
  readonly height: number;
}

interface LevelSize {
  readonly level: Level;
  readonly leastWidth: number;
  readonly mostWidth: number;
  readonly leastHeight: number;
  readonly mostHeight: number;
  readonly gap: number;
}

const LEVELS: readonly LevelSize[] = [
  { level: "plot", leastWidth: 44, mostWidth: 520, leastHeight: 26, mostHeight: 330, gap: 6 },
  { level: "strip", leastWidth: 14, mostWidth: 120, leastHeight: 8, mostHeight: 26, gap: 2 },
  { level: "cell", leastWidth: 5, mostWidth: 22, leastHeight: 5, mostHeight: 22, gap: 1 },
];
const CELL: LevelSize = { level: "cell", leastWidth: 5, mostWidth: 22, leastHeight: 5, mostHeight: 22, gap: 1 };
const BLOCK_GAP = 14;
/** Longer rows are broken: a row that cannot be followed with the eye says nothing. */
const ROW_LENGTHS = [8, 12, 16, 24, 32, 64];
/** A single group has no columns to compare with others. */
const LONE_LENGTHS = [2, 4, 6, ...ROW_LENGTHS];
/** Of a layout with a last row that is shorter. */
const RAGGED = 0.8;
const MOST_BLOCKS = 16;
/** Heights of a plot in its widths. */
const TALLEST = 1.5;
const CHARACTER_PX = 6.2;

interface Row {
  readonly title: string;
  readonly slots: readonly (number | null)[];
}

export function layoutMultiples(groups: readonly MultiplesGroup[], width: number, height: number): MultiplesLayout {
  const longest = Math.max(1, ...groups.map(({ slots }) => slots.length));
  const usual = groups.length === 1 ? LONE_LENGTHS : ROW_LENGTHS;
  const lengths = [...new Set([...usual.filter((length) => length < longest), longest])].filter(
    (length) => length <= 64,
  );
  for (const size of LEVELS) {
    let best: MultiplesLayout | null = null;
    let bestScore = 0;
    for (const length of lengths.length > 0 ? lengths : [64]) {
      const rows = breakRows(groups, length);
      for (let blocks = 1; blocks <= Math.min(MOST_BLOCKS, rows.length); blocks += 1) {
        const layout = place(rows, length, blocks, size, width, height);
        const score = layout ? sizeOf(layout) * (longest % length === 0 ? 1 : RAGGED) : 0;
        if (score > bestScore) [best, bestScore] = [layout, score];
      }
    }
    if (best) return best;
  }
  const rows = breakRows(groups, Math.min(64, longest));
  const perRow = Math.min(64, longest) * (CELL.leastWidth + CELL.gap) + titleWidthOf(rows, "cell") + BLOCK_GAP;
  const blocks = Math.max(1, Math.floor((width + BLOCK_GAP) / perRow));
  return placeAt(rows, blocks, CELL, CELL.leastWidth + 1, CELL.leastHeight + 1, width / blocks);
}

/** The smaller side counts: a plot of no height is not read. */
function sizeOf({ plotWidth, plotHeight }: MultiplesLayout): number {
  return Math.min(plotWidth, plotHeight * 2.2);
}

function breakRows(groups: readonly MultiplesGroup[], length: number): readonly Row[] {
  return groups.flatMap(({ title, slots }) => {
    if (slots.length <= length) return [{ title, slots }];
    const rows: Row[] = [];
    for (let from = 0; from < slots.length; from += length) {
      rows.push({ title: from === 0 ? title : "", slots: slots.slice(from, from + length) });
    }
    return rows;
  });
}

function titleWidthOf(rows: readonly Row[], level: Level): number {
  const longest = Math.max(0, ...rows.map(({ title }) => title.length));
  if (longest === 0) return 0;
  return Math.min(level === "plot" ? 110 : 72, Math.ceil(longest * CHARACTER_PX) + 14);
}

function place(
  rows: readonly Row[],
  length: number,
  blocks: number,
  size: LevelSize,
  width: number,
  height: number,
): MultiplesLayout | null {
  const perBlock = Math.ceil(rows.length / blocks);
  const blockWidth = (width - (blocks - 1) * BLOCK_GAP) / blocks;
  const plotWidth = (blockWidth - titleWidthOf(rows, size.level)) / length - size.gap;
  const plotHeight = height / perBlock - size.gap;
  if (plotWidth < size.leastWidth || plotHeight < size.leastHeight) return null;
  const placedWidth = Math.min(plotWidth, size.mostWidth);
  const placedHeight = Math.min(plotHeight, size.mostHeight, placedWidth * TALLEST);
  return placeAt(rows, blocks, size, placedWidth, placedHeight, blockWidth + BLOCK_GAP);
}

function placeAt(
  rows: readonly Row[],
  blocks: number,
  { level, gap }: LevelSize,
  plotWidth: number,
  plotHeight: number,
  blockStep: number,
): MultiplesLayout {
  const perBlock = Math.ceil(rows.length / blocks);
  const titleWidth = titleWidthOf(rows, level);
  const plots: PlacedPlot[] = [];
  const titles: PlacedTitle[] = [];
  rows.forEach(({ title, slots }, row) => {
    const left = Math.floor(row / perBlock) * blockStep;
    const top = (row % perBlock) * (plotHeight + gap);
    if (title) titles.push({ title, left, middle: top + plotHeight / 2 });
    slots.forEach((plot, column) => {
      if (plot !== null) plots.push({ plot, left: left + titleWidth + column * (plotWidth + gap), top });
    });
  });
  return { level, plotWidth, plotHeight, titleWidth, plots, titles, height: perBlock * (plotHeight + gap) - gap };
}

/** The plot at a place; null between them. */
export function findPlot({ plots, plotWidth, plotHeight }: MultiplesLayout, x: number, y: number): number | null {
  const plotAt = plots.find(({ left, top }) => x >= left && x < left + plotWidth && y >= top && y < top + plotHeight);
  return plotAt?.plot ?? null;
}

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** The plots that a box touches. */
export function findPlots({ plots, plotWidth, plotHeight }: MultiplesLayout, box: Box): readonly number[] {
  return plots
    .filter(
      ({ left, top }) =>
        left < box.right && left + plotWidth > box.left && top < box.bottom && top + plotHeight > box.top,
    )
    .map(({ plot }) => plot);
}

const STEPS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The nearest plot in the direction of an arrow key; the first one where none was pointed at. */
export function stepPlot(layout: MultiplesLayout, from: number | null, key: string): number | null {
  const step = STEPS[key];
  if (step === undefined) return null;
  const start = layout.plots.find(({ plot }) => plot === from);
  if (start === undefined) return layout.plots[0]?.plot ?? null;
  const [dx, dy] = step;
  let best: PlacedPlot | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const other of layout.plots) {
    const along = (other.left - start.left) * dx + (other.top - start.top) * dy;
    const across = Math.abs((other.left - start.left) * dy) + Math.abs((other.top - start.top) * dx);
    if (along <= 0.5) continue;
    const cost = along + across * 4;
    if (cost < least) [best, least] = [other, cost];
  }
  return (best ?? start).plot;
}
