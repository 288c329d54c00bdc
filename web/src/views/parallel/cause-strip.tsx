// All steps and ranks in one strip, colored by where a cause acts; a cell leads to its step in the graph.

import { type KeyboardEvent, type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import type { TraceReportAnswer } from "../../api/generated.ts";
import type { TraceSteps } from "../../api/traces-client.ts";
import { useInk, useSize } from "../../charts/canvas.tsx";
import { ChartTip } from "../../charts/chart-tip.tsx";
import styles from "./cause-strip.module.css";
import { type Cause, type CauseTable, findWorst, keyOfCell, listCauses } from "./causes.ts";
import { formatSeconds } from "./graph/axis.ts";

interface CauseStripProps {
  readonly report: TraceReportAnswer;
  readonly steps: TraceSteps;
  /** The verdict that is shown; null: none. */
  readonly verdict: number | null;
  /** Absent: cells lead nowhere. */
  onCell?(rank: number, step: number, verdict: number | null): void;
}

interface Cell {
  readonly row: number;
  readonly column: number;
}

const GAP_FROM_PX = 6;
const MIN_ALPHA = 0.25;

export function CauseStrip({ report, steps, verdict, onCell }: CauseStripProps) {
  const table = useMemo(() => listCauses(report, steps), [report, steps]);
  const [chosen, setChosen] = useState<string | null>(null);
  const [pointed, setPointed] = useState<Cell | null>(null);
  const place = useRef<HTMLDivElement>(null);
  const size = useSize(place);
  const shown = useMemo(() => chooseCauses(table, chosen, verdict), [table, chosen, verdict]);
  useCells(place, table, shown, size);
  if (table.causes.length === 0 || table.ranks.length === 0) return null;
  const open = ({ row, column }: Cell) => {
    const [rank, step] = [table.ranks[row] ?? 0, table.steps[column] ?? 0];
    onCell?.(rank, step, findWorst(shown, rank, step)?.verdict ?? null);
  };
  const cellAt = (event: PointerEvent<HTMLElement>): Cell => {
    const box = event.currentTarget.getBoundingClientRect();
    const at = (share: number, count: number) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
    return {
      row: at((event.clientY - box.top) / box.height, table.ranks.length),
      column: at((event.clientX - box.left) / box.width, table.steps.length),
    };
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const from = pointed ?? { row: 0, column: 0 };
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (move) {
      const clamp = (value: number, count: number) => Math.min(count - 1, Math.max(0, value));
      setPointed({
        row: clamp(from.row + (move[0] ?? 0), table.ranks.length),
        column: clamp(from.column + (move[1] ?? 0), table.steps.length),
      });
    } else if (event.key === "Enter" || event.key === " ") open(from);
    else return;
    event.preventDefault();
  };
  return (
    <section className={styles.causes} aria-label="Causes by rank and step">
      <header>
        <h2>Causes</h2>
        <select aria-label="Cause" value={chosen ?? ""} onChange={(event) => setChosen(event.target.value || null)}>
          <option value="">largest{verdict === null ? "" : " or shown"}</option>
          {table.causes.map(({ key, title }) => (
            <option key={key} value={key}>
              {title}
            </option>
          ))}
        </select>
      </header>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be drawn in */}
      <div
        ref={place}
        role="group"
        aria-label={describeTable(table, shown)}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys move from cell to cell
        tabIndex={0}
        className={styles.cells}
        data-linked={onCell !== undefined || undefined}
        onPointerMove={(event) => setPointed(cellAt(event))}
        onPointerLeave={() => setPointed(null)}
        onBlur={() => setPointed(null)}
        onClick={() => pointed && open(pointed)}
        onKeyDown={onKeyDown}
      >
        <canvas />
        {pointed && <CellTip table={table} cell={pointed} />}
      </div>
      <footer>
        <span>
          rank {table.ranks[0]}–{table.ranks.at(-1)} ↓
        </span>
        <span>
          step {table.steps[0]}–{table.steps.at(-1)} →
        </span>
      </footer>
    </section>
  );
}

/** The chosen cause; else that of the verdict that is shown; else those of all verdicts; else all parts of the steps. */
function chooseCauses({ causes }: CauseTable, chosen: string | null, verdict: number | null): readonly Cause[] {
  const one = causes.find((cause) =>
    chosen === null ? verdict !== null && cause.verdict === verdict : cause.key === chosen,
  );
  if (one) return [one];
  const verdicts = causes.filter((cause) => cause.verdict !== null);
  return verdicts.length > 0 ? verdicts : causes;
}

function useCells(
  place: React.RefObject<HTMLDivElement | null>,
  { ranks, steps }: CauseTable,
  shown: readonly Cause[],
  { width, height }: { readonly width: number; readonly height: number },
): void {
  const ink = useInk();
  useEffect(() => {
    const canvas = place.current?.querySelector("canvas");
    const pen = canvas?.getContext("2d");
    if (!canvas || !pen || width === 0) return;
    const ratio = globalThis.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const [cellWidth, cellHeight] = [width / steps.length, height / ranks.length];
    const gap = Math.min(cellWidth, cellHeight) > GAP_FROM_PX ? 1 : 0;
    const most = Math.max(1e-12, ...shown.flatMap(({ seconds }) => [...seconds.values()]));
    ranks.forEach((rank, row) => {
      steps.forEach((step, column) => {
        const cause = findWorst(shown, rank, step);
        const share = (cause?.seconds.get(keyOfCell(rank, step)) ?? 0) / most;
        pen.globalAlpha = cause ? MIN_ALPHA + (1 - MIN_ALPHA) * share : 1;
        pen.fillStyle = ink(cause?.color ?? "var(--track)");
        pen.fillRect(column * cellWidth, row * cellHeight, Math.max(1, cellWidth - gap), Math.max(1, cellHeight - gap));
      });
    });
  }, [place, ranks, steps, shown, width, height, ink]);
}

const MAX_TIP_ROWS = 5;

function CellTip({ table, cell }: { readonly table: CauseTable; readonly cell: Cell }) {
  const [rank, step] = [table.ranks[cell.row] ?? 0, table.steps[cell.column] ?? 0];
  const key = keyOfCell(rank, step);
  const rows = table.causes
    .filter(({ seconds }) => (seconds.get(key) ?? 0) > 0)
    .toSorted((a, b) => (b.seconds.get(key) ?? 0) - (a.seconds.get(key) ?? 0))
    .slice(0, MAX_TIP_ROWS)
    .map((cause) => ({ ...cause, text: formatSeconds(cause.seconds.get(key) ?? 0) }));
  return (
    <ChartTip
      at={(cell.column + 0.5) / table.steps.length}
      title={`Rank ${rank}, step ${step}`}
      rows={rows}
      none="No cause acts here."
    />
  );
}

function describeTable({ ranks, steps }: CauseTable, shown: readonly Cause[]): string {
  const parts = shown.map(({ title, seconds }) => `${title} in ${seconds.size} of ${ranks.length * steps.length}`);
  return `${parts.join(", ")} ranks and steps; arrow keys move between them, Enter shows the step`;
}
