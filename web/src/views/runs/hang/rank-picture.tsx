// Ranks by process groups, drawn: a cell per rank and kind of groups. Its shape and color say how the rank stands to the
// pending call of its group; with room, its number says how many calls it has made.

import { type PointerEvent, useCallback, useMemo, useRef, useState } from "react";
import type { GroupRow, HangReport } from "../../../api/generated.ts";
import { formatCount, formatPlural } from "../../../base/format.ts";
import { Canvas, type Ink, useInk, useSize } from "../../../charts/canvas.tsx";
import { ChartTip } from "../../../charts/chart-tip.tsx";
import type { Pen } from "../../../charts/pen.ts";
import styles from "./hang.module.css";
import {
  type CellState,
  cellAt,
  cellState,
  hasBlocks,
  isIdleRow,
  layoutRanks,
  placeOf,
  type RankLayout,
  WRITTEN_FROM_PX,
} from "./rank-layout.ts";

export const STATE_TITLES: Readonly<Record<CellState, string>> = {
  waiting: "waits in the call",
  absent: "has not made the call",
  held: "has not made the call: it waits elsewhere",
  odd: "made another call",
  unstarted: "queued it; its GPU has not started it",
  dead: "its process has ended",
  unknown: "no source tells",
  clear: "nothing pending",
};

/** In the order of a legend: what matters first. */
export const STATES: readonly CellState[] = [
  "absent",
  "held",
  "odd",
  "unstarted",
  "dead",
  "unknown",
  "waiting",
  "clear",
];

export const STATE_COLORS: Readonly<Record<CellState, string>> = {
  waiting: "light-dark(#a9bfe0, #35537f)",
  absent: "var(--bad)",
  held: "var(--bad)",
  odd: "light-dark(#8250df, #b794f6)",
  unstarted: "var(--warn)",
  dead: "var(--text)",
  unknown: "var(--faint)",
  clear: "var(--track)",
};

interface RankPictureProps {
  readonly report: HangReport;
  /** Ranks of the group of stacks or of the stall that is pointed at; null: none. */
  readonly highlighted: ReadonlySet<number> | null;
}

const NARROW_PX = 520;
const FAMILY = '"Inter Variable", Inter, system-ui, sans-serif';
const FONT = `11px ${FAMILY}`;
const SMALL_FONT = `10px ${FAMILY}`;

export function RankPicture({ report, highlighted }: RankPictureProps) {
  const place = useRef<HTMLDivElement>(null);
  const size = useSize(place);
  const ink = useInk();
  const [pointed, setPointed] = useState<{ readonly row: number; readonly at: number } | null>(null);
  const { ranks, rows } = report;
  const left = size.width < NARROW_PX ? 92 : 132;
  const layout = useMemo(
    () =>
      layoutRanks(
        ranks.length,
        rows.map((row) => isIdleRow(report, row)),
        size.width - 2,
        left,
      ),
    [report, ranks, rows, size.width, left],
  );
  const draw = useCallback(
    (pen: Pen) => drawRanks(pen, report, layout, ink, highlighted),
    [report, layout, ink, highlighted],
  );
  const onMove = ({ clientX, clientY, currentTarget }: PointerEvent<HTMLDivElement>) => {
    const box = currentTarget.getBoundingClientRect();
    setPointed(cellAt(layout, clientX - box.left, clientY - box.top, ranks.length));
  };
  const row = pointed && rows[pointed.row];
  return (
    <div
      ref={place}
      role="img"
      aria-label={describePicture(report)}
      className={styles.ranks}
      style={{ height: layout.height }}
      onPointerMove={onMove}
      onPointerLeave={() => setPointed(null)}
    >
      <Canvas size={{ width: size.width, height: layout.height }} draw={draw} />
      {pointed && row && <CellTip report={report} row={row} at={pointed.at} layout={layout} width={size.width} />}
    </div>
  );
}

export function describePicture(report: HangReport): string {
  const counts = STATES.map((state) => ({ state, count: countState(report, state) })).filter(({ count }) => count > 0);
  const parts = counts.map(({ state, count }) => `${formatCount(count)}: ${STATE_TITLES[state]}`);
  return `${formatPlural(report.ranks.length, "rank")} by ${formatPlural(report.rows.length, "kind")} of process groups; ${parts.join("; ")}`;
}

/** Ranks with this state in some group. */
export function countState(report: HangReport, state: CellState): number {
  const guilty = new Set(report.verdict.ranks);
  return report.ranks.filter((_, at) => report.rows.some((row) => cellState(report, row, at, guilty) === state)).length;
}

interface CellTipProps {
  readonly report: HangReport;
  readonly row: GroupRow;
  readonly at: number;
  readonly layout: RankLayout;
  readonly width: number;
}

function CellTip({ report, row, at, layout, width }: CellTipProps) {
  const rank = report.ranks[at] ?? 0;
  const state = cellState(report, row, at, new Set(report.verdict.ranks));
  const group = row.group[at];
  const stack = report.verdict.stacks?.find(({ ranks }) => ranks.includes(rank));
  const { x } = placeOf(layout, 0, at);
  const facts = [
    state && { title: STATE_TITLES[state], text: "", color: STATE_COLORS[state] },
    group != null && { title: row.name, text: `group ${row.groups[group] ?? "?"}`, color: "transparent" },
    row.enqueued[at] != null && {
      title: "made",
      text: `${formatCount(row.enqueued[at])} calls${row.completed[at] == null ? "" : `, completed ${formatCount(row.completed[at])}`}`,
      color: "transparent",
    },
    stack && { title: stack.frames[0] ?? "", text: "", color: "transparent" },
  ].filter((fact) => fact !== false && fact !== null && fact !== undefined);
  return (
    <ChartTip
      at={x / Math.max(1, width)}
      title={`Rank ${rank}`}
      rows={facts.map((fact) => ({ key: fact.title, ...fact }))}
      none="In no group of this kind"
    />
  );
}

function drawRanks(
  pen: Pen,
  report: HangReport,
  layout: RankLayout,
  ink: Ink,
  highlighted: ReadonlySet<number> | null,
): void {
  const { ranks, rows, verdict } = report;
  const guilty = new Set(verdict.ranks);
  const text = ink("var(--text)");
  rows.forEach((row, place) => {
    const top = placeOf(layout, place, 0).y;
    const isFolded = layout.isFolded[place] ?? false;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillStyle = text;
    pen.font = `600 12px ${FAMILY}`;
    const isOneLine = layout.lines === 1 && layout.cellPx < WRITTEN_FROM_PX;
    const first = isFolded ? top - 8 : isOneLine ? top + layout.cellPx / 2 - 6 : top + 8;
    pen.fillText(shorten(row.name, layout.left), 0, first);
    pen.fillStyle = ink("var(--muted)");
    pen.font = FONT;
    const groups = formatPlural(row.groups.length, "group");
    if (isFolded) {
      pen.fillText(`${groups}: nothing pending`, layout.left, first);
      return;
    }
    pen.fillText(groups, 0, first + 14);
    if (!layout.isFolded.slice(0, place).includes(false)) drawRankNumbers(pen, layout, place, ranks, ink);
    if (layout.lines > 1) drawLineNumbers(pen, layout, place, ranks, ink);
    const isBlocked = hasBlocks(row);
    ranks.forEach((rank, at) => {
      const state = cellState(report, row, at, guilty);
      if (state === null) return;
      const { x, y } = placeOf(layout, place, at);
      pen.globalAlpha = highlighted === null || highlighted.has(rank) ? 1 : 0.25;
      const isBlockStart = isBlocked && at % layout.perLine > 0 && row.group[at] !== row.group[at - 1];
      drawCell(
        pen,
        { x: x + (isBlockStart ? 2 : 0), y, width: layout.cellPx - (isBlockStart ? 3 : 1), height: layout.cellPx - 1 },
        state,
        ink,
      );
      if (layout.cellPx >= WRITTEN_FROM_PX && row.enqueued[at] != null) {
        pen.fillStyle = ink(state === "waiting" || state === "clear" || state === "held" ? "var(--text)" : "var(--bg)");
        pen.font = FONT;
        pen.textAlign = "center";
        pen.fillText(String(row.enqueued[at]), x + layout.cellPx / 2, y + layout.cellPx / 2);
      }
      if (guilty.has(rank) && state !== "clear") outline(pen, x, y, layout.cellPx, text);
      pen.globalAlpha = 1;
    });
  });
}

/** The first rank of every other line. */
function drawLineNumbers(pen: Pen, layout: RankLayout, row: number, ranks: readonly number[], ink: Ink): void {
  pen.fillStyle = ink("var(--muted)");
  pen.font = SMALL_FONT;
  pen.textAlign = "right";
  for (let line = 0; line < layout.lines; line += layout.cellPx < 12 ? 2 : 1) {
    const { x, y } = placeOf(layout, row, line * layout.perLine);
    pen.fillText(String(ranks[line * layout.perLine]), x - 5, y + layout.cellPx / 2);
  }
}

function drawRankNumbers(pen: Pen, layout: RankLayout, row: number, ranks: readonly number[], ink: Ink): void {
  pen.fillStyle = ink("var(--muted)");
  pen.font = SMALL_FONT;
  pen.textAlign = "center";
  const every = Math.max(1, 2 ** Math.ceil(Math.log2(26 / layout.cellPx)));
  for (let at = 0; at < Math.min(layout.perLine, ranks.length); at += every) {
    const { x, y } = placeOf(layout, row, at);
    pen.fillText(String(ranks[at]), x + layout.cellPx / 2, y - 9);
  }
}

interface CellBox {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Each state has a shape of its own, so that color is not all that tells them apart. */
function drawCell(pen: Pen, { x, y, width, height }: CellBox, state: CellState, ink: Ink): void {
  const color = ink(STATE_COLORS[state]);
  pen.fillStyle = color;
  pen.strokeStyle = color;
  pen.lineWidth = Math.max(1.2, height / 12);
  const inset = pen.lineWidth / 2 + 0.5;
  if (state === "clear") {
    const side = Math.max(2, Math.min(width, height) * 0.36);
    pen.globalAlpha *= height >= WRITTEN_FROM_PX ? 0.5 : 1;
    if (height >= WRITTEN_FROM_PX) pen.fillRect(x, y, width, height);
    else pen.fillRect(x + (width - side) / 2, y + (height - side) / 2, side, side);
    pen.globalAlpha /= height >= WRITTEN_FROM_PX ? 0.5 : 1;
  } else if (state === "held") {
    pen.strokeRect(x + inset, y + inset, width - 2 * inset, height - 2 * inset);
  } else if (state === "unknown") {
    pen.setLineDash([2, 2]);
    pen.strokeRect(x + inset, y + inset, width - 2 * inset, height - 2 * inset);
    pen.setLineDash([]);
  } else if (state === "dead") {
    pen.beginPath();
    pen.moveTo(x + inset, y + inset);
    pen.lineTo(x + width - inset, y + height - inset);
    pen.moveTo(x + width - inset, y + inset);
    pen.lineTo(x + inset, y + height - inset);
    pen.stroke();
  } else if (state === "unstarted") {
    pen.strokeRect(x + inset, y + inset, width - 2 * inset, height - 2 * inset);
    pen.fillRect(x, y + height / 2, width, height / 2);
  } else if (state === "odd" && height < WRITTEN_FROM_PX) {
    pen.beginPath();
    pen.moveTo(x + width / 2, y);
    pen.lineTo(x + width, y + height / 2);
    pen.lineTo(x + width / 2, y + height);
    pen.lineTo(x, y + height / 2);
    pen.closePath();
    pen.fill();
  } else {
    pen.fillRect(x, y, width, height);
  }
}

function outline(pen: Pen, x: number, y: number, side: number, color: string): void {
  pen.strokeStyle = color;
  pen.lineWidth = 1.5;
  pen.strokeRect(x - 0.75, y - 0.75, side + 0.5, side + 0.5);
}

function shorten(name: string, left: number): string {
  const most = Math.floor((left - 10) / 6.6);
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}
