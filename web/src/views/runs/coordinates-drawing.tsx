// Parallel coordinates: each run is a line through its params and results.

import { useRef } from "react";
import type { RunRow } from "../../api/generated.ts";
import { isKnown } from "../../base/format.ts";
import { useSize } from "../../charts/canvas.tsx";
import { openRun } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import styles from "./charts.module.css";
import { describeSharing, describeUnfinished, type RunGroup } from "./groups.ts";
import { RunLegend } from "./legend.tsx";
import { formatNumber, type RunQuantity } from "./quantities.ts";

interface CoordinatesDrawingProps {
  readonly groups: readonly RunGroup[];
  readonly quantities: readonly RunQuantity[];
}

const MAX_AXES = 9;
const SIDE = 60;
const TOP = 36;
const BOTTOM = 18;

interface Axis {
  readonly key: string;
  readonly title: string;
  /** 0 at the bottom, 1 at the top; null: the run has no value. */
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
        <div ref={place} data-figure={true} style={{ flex: 1, minHeight: 0 }}>
          <svg width={width} height={height} role="img" aria-label="Each run a line through its params and results">
            {axes.map((axis, at) => (
              <g key={axis.key} transform={`translate(${toX(at)} 0)`}>
                {/* Titles alternate between two heights, because they are wider than the axis distance. */}
                <text y={TOP - (at % 2 === 0 ? 20 : 7)} textAnchor="middle">
                  {axis.title}
                </text>
                <line className={styles.grid} y1={TOP} y2={height - BOTTOM} style={{ stroke: "var(--line)" }} />
              </g>
            ))}
            {groups.flatMap(({ rows: members, color, label }) =>
              members.map((row) => {
                const unfinished = describeUnfinished([row]);
                return (
                  // biome-ignore lint/a11y/useSemanticElements: an SVG path cannot be a button
                  <path
                    key={row.run}
                    role="button"
                    tabIndex={0}
                    className={styles.path}
                    stroke={color}
                    d={pathOf(row, axes, toX, toY)}
                    strokeDasharray={unfinished === null ? undefined : "5 4"}
                    data-tip={unfinished === null ? label : `${label}: ${unfinished}`}
                    onClick={() => change(openRun(row))}
                    onKeyDown={(event) => {
                      if (event.key === "Enter") change(openRun(row));
                    }}
                  />
                );
              }),
            )}
            {/* Drawn last, above the lines. */}
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

/** Axes of values that differ between runs. */
function listAxes(rows: readonly RunRow[], quantities: readonly RunQuantity[]): readonly Axis[] {
  const textAxes = [...new Set(rows.flatMap(({ params }) => Object.keys(params)))]
    .filter((name) => !quantities.some(({ key }) => key === `param:${name}`))
    .map((name) => textAxis(name, name, rows, ({ params }) => params[name] ?? null));
  const sharing = textAxis("collocation", "Sharing", rows, (row) => describeSharing(row) ?? "none");
  const params = quantities.filter(({ key }) => key.startsWith("param:"));
  const results = quantities.filter(({ key }) => !key.startsWith("param:"));
  return [...textAxes, sharing, ...[...params, ...results].map((quantity) => numberAxis(quantity, rows))]
    .filter((axis): axis is Axis => axis !== null)
    .slice(0, MAX_AXES);
}

function textAxis(
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
    labels: [0, 0.5, 1].map((at) => ({ at, text: formatNumber(low + at * (high - low), quantity.unit) })),
  };
}
