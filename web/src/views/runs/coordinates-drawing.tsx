// Parallel coordinates: each run a line through its params and what came out, so that one sees which settings lead where.

import { useRef } from "react";
import type { RunRow } from "../../api/generated.ts";
import { isKnown } from "../../base/format.ts";
import { useSize } from "../../charts/canvas.tsx";
import { openRun } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import styles from "./charts.module.css";
import { type RunGroup, saySharing } from "./groups.ts";
import { RunLegend } from "./legend.tsx";
import { type RunQuantity, sayNumber } from "./quantities.ts";

interface CoordinatesDrawingProps {
  readonly groups: readonly RunGroup[];
  readonly quantities: readonly RunQuantity[];
}

const MOST_AXES = 9;
const SIDE = 60;
const TOP = 36;
const BOTTOM = 18;

interface Axis {
  readonly key: string;
  readonly title: string;
  /** 0 at the bottom, 1 at the top; null: the run has none. */
  place(row: RunRow): number | null;
  readonly labels: readonly { readonly at: number; readonly text: string }[];
}

export function CoordinatesDrawing({ groups, quantities }: CoordinatesDrawingProps) {
  const change = useChangeScreen();
  const place = useRef<HTMLDivElement>(null);
  const { width, height } = useSize(place);
  const rows = groups.flatMap((group) => group.rows);
  const axes = listAxes(rows, quantities);
  const toX = (at: number) => SIDE + (at / Math.max(1, axes.length - 1)) * (width - 2 * SIDE);
  const toY = (ratio: number) => height - BOTTOM - ratio * (height - TOP - BOTTOM);
  return (
    <>
      <RunLegend groups={groups} />
      <section className={styles.wide} aria-label="Params and results">
        <div ref={place} style={{ flex: 1, minHeight: 0 }}>
          <svg width={width} height={height} role="img" aria-label="Each run a line through its params and results">
            {axes.map((axis, at) => (
              <g key={axis.key} transform={`translate(${toX(at)} 0)`}>
                {/* Neighboring titles stand at two heights: they are wider than their axes are apart. */}
                <text y={TOP - (at % 2 === 0 ? 20 : 7)} textAnchor="middle">
                  {axis.title}
                </text>
                <line className={styles.grid} y1={TOP} y2={height - BOTTOM} style={{ stroke: "var(--line)" }} />
              </g>
            ))}
            {groups.flatMap(({ rows: members, color, label }) =>
              members.map((row) => (
                // biome-ignore lint/a11y/useSemanticElements: a line of a drawing cannot be a button
                <path
                  key={row.run}
                  role="button"
                  tabIndex={0}
                  className={styles.path}
                  stroke={color}
                  d={pathOf(row, axes, toX, toY)}
                  data-tip={label}
                  onClick={() => change(openRun(row))}
                  onKeyDown={(event) => {
                    if (event.key === "Enter") change(openRun(row));
                  }}
                />
              )),
            )}
            {/* Last, so that no line runs over a number. */}
            {axes.flatMap((axis, at) =>
              axis.labels.map((label) => (
                <text
                  key={`${axis.key}/${label.at}`}
                  x={toX(at) + 6}
                  y={toY(label.at)}
                  dy="0.32em"
                  pointerEvents="none"
                >
                  {label.text}
                </text>
              )),
            )}
          </svg>
        </div>
      </section>
    </>
  );
}

function pathOf(
  row: RunRow,
  axes: readonly Axis[],
  toX: (at: number) => number,
  toY: (ratio: number) => number,
): string {
  let [path, isDown] = ["", false];
  axes.forEach((axis, at) => {
    const ratio = axis.place(row);
    if (ratio === null) {
      isDown = false;
      return;
    }
    path += `${isDown ? "L" : "M"}${toX(at).toFixed(1)} ${toY(ratio).toFixed(1)}`;
    isDown = true;
  });
  return path;
}

/** What is the same for all runs tells nothing and has no axis. */
function listAxes(rows: readonly RunRow[], quantities: readonly RunQuantity[]): readonly Axis[] {
  const words = [...new Set(rows.flatMap(({ params }) => Object.keys(params)))]
    .filter((name) => !quantities.some(({ key }) => key === `param:${name}`))
    .map((name) => wordAxis(name, name, rows, ({ params }) => params[name] ?? null));
  const sharing = wordAxis("collocation", "Sharing", rows, (row) => saySharing(row) ?? "none");
  const params = quantities.filter(({ key }) => key.startsWith("param:"));
  const outcomes = quantities.filter(({ key }) => !key.startsWith("param:"));
  return [...words, sharing, ...[...params, ...outcomes].map((each) => numberAxis(each, rows))]
    .filter((axis): axis is Axis => axis !== null)
    .slice(0, MOST_AXES);
}

function wordAxis(
  key: string,
  title: string,
  rows: readonly RunRow[],
  of: (row: RunRow) => string | null,
): Axis | null {
  const words = [...new Set(rows.map(of))].filter((word) => word !== null).sort();
  if (words.length < 2) return null;
  const at = (word: string) => words.indexOf(word) / (words.length - 1);
  return {
    key,
    title,
    place: (row) => {
      const word = of(row);
      return word === null ? null : at(word);
    },
    labels: words.map((text) => ({ at: at(text), text })),
  };
}

function numberAxis(quantity: RunQuantity, rows: readonly RunRow[]): Axis | null {
  const values = rows.map((row) => quantity.of(row)).filter(isKnown);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (!(high > low)) return null;
  return {
    key: quantity.key,
    title: quantity.title,
    place: (row) => {
      const value = quantity.of(row);
      return isKnown(value) ? (value - low) / (high - low) : null;
    },
    labels: [0, 0.5, 1].map((at) => ({ at, text: sayNumber(low + at * (high - low), quantity.unit) })),
  };
}
