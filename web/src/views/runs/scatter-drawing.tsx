// Two quantities against each other, a point for each run: joules per sample against throughput, loss against batch size.

import { useRef } from "react";
import { isKnown } from "../../base/format.ts";
import { useSize } from "../../charts/canvas.tsx";
import { listNumbers } from "../../charts/number-axis.tsx";
import { changeRuns, openRun, type RunsPage } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import styles from "./charts.module.css";
import type { RunGroup } from "./groups.ts";
import { RunLegend } from "./legend.tsx";
import { type RunQuantity, sayNumber } from "./quantities.ts";

interface ScatterDrawingProps {
  readonly page: RunsPage;
  readonly groups: readonly RunGroup[];
  readonly quantities: readonly RunQuantity[];
}

const LEFT = 64;
const BELOW = 34;
const ABOVE = 8;
const RIGHT = 14;

export function ScatterDrawing({ page, groups, quantities }: ScatterDrawingProps) {
  const x = choose(page.x, ["throughput", "gpu_util", "running"], quantities);
  const y = choose(page.y, ["joules_per_work", "energy", "power"], quantities, x);
  return (
    <>
      <RunLegend groups={groups} />
      <section className={styles.wide} aria-label="Two quantities">
        <div className={styles.axes}>
          <QuantityChoice label="Up" value={y} quantities={quantities} field="y" />
          against
          <QuantityChoice label="Right" value={x} quantities={quantities} field="x" />
        </div>
        {x && y && <Points x={x} y={y} groups={groups} open={page.open} />}
      </section>
    </>
  );
}

function choose(
  wanted: string,
  usual: readonly string[],
  quantities: readonly RunQuantity[],
  other?: RunQuantity,
): RunQuantity | undefined {
  const named = [wanted, ...usual].map((key) => quantities.find((each) => each.key === key && each !== other));
  return named.find(Boolean) ?? quantities.find((each) => each !== other);
}

interface QuantityChoiceProps {
  readonly label: string;
  readonly value: RunQuantity | undefined;
  readonly quantities: readonly RunQuantity[];
  readonly field: "x" | "y";
}

function QuantityChoice({ label, value, quantities, field }: QuantityChoiceProps) {
  const change = useChangeScreen();
  return (
    <select
      aria-label={label}
      value={value?.key}
      onChange={(event) => change(changeRuns({ [field]: event.target.value }), "replace")}
    >
      {quantities.map(({ key, title }) => (
        <option key={key} value={key}>
          {title}
        </option>
      ))}
    </select>
  );
}

interface PointsProps {
  readonly x: RunQuantity;
  readonly y: RunQuantity;
  readonly groups: readonly RunGroup[];
  readonly open: string | null;
}

function Points({ x, y, groups, open }: PointsProps) {
  const change = useChangeScreen();
  const place = useRef<HTMLDivElement>(null);
  const { width, height } = useSize(place);
  const points = groups.flatMap((group) =>
    group.rows.flatMap((row) => {
      const [right, up] = [x.of(row), y.of(row)];
      return isKnown(right) && isKnown(up) ? [{ row, group, right, up }] : [];
    }),
  );
  const [left, wide] = pad(points.map(({ right }) => right));
  const [low, high] = pad(points.map(({ up }) => up));
  const toX = (value: number) => LEFT + ((value - left) / (wide - left)) * (width - LEFT - RIGHT);
  const toY = (value: number) => height - BELOW - ((value - low) / (high - low)) * (height - BELOW - ABOVE);
  return (
    <div ref={place} style={{ flex: 1, minHeight: 0 }}>
      <svg width={width} height={height} role="img" aria-label={`${y.title} against ${x.title}`}>
        {listNumbers(left, wide, width / 110).map((value) => (
          <g key={value} transform={`translate(${toX(value)} 0)`}>
            <line className={styles.grid} y1={ABOVE} y2={height - BELOW} />
            <text y={height - BELOW + 15} textAnchor="middle">
              {sayNumber(value, x.unit)}
            </text>
          </g>
        ))}
        {listNumbers(low, high, height / 60).map((value) => (
          <g key={value} transform={`translate(0 ${toY(value)})`}>
            <line className={styles.grid} x1={LEFT} x2={width - RIGHT} />
            <text x={LEFT - 8} dy="0.32em" textAnchor="end">
              {sayNumber(value, y.unit)}
            </text>
          </g>
        ))}
        <text x={width - RIGHT} y={height - 4} textAnchor="end">
          {x.title}
        </text>
        {points.map(({ row, group, right, up }) => (
          // biome-ignore lint/a11y/useSemanticElements: a circle of a drawing cannot be a button
          <circle
            key={row.run}
            role="button"
            tabIndex={0}
            className={styles.point}
            cx={toX(right)}
            cy={toY(up)}
            r={row.run === open ? 8 : 5.5}
            fill={group.color}
            fillOpacity={0.85}
            stroke="var(--panel)"
            data-tip={`${group.label}: ${sayNumber(up, y.unit)} at ${sayNumber(right, x.unit)}`}
            onClick={() => change(openRun(row))}
            onKeyDown={(event) => {
              if (event.key === "Enter" || event.key === " ") change(openRun(row));
            }}
          />
        ))}
      </svg>
      {points.length === 0 && <p>None of the runs has both.</p>}
    </div>
  );
}

function pad(values: readonly number[]): readonly [number, number] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (!(high >= low)) return [0, 1];
  const margin = high > low ? (high - low) * 0.08 : Math.abs(high || 1) * 0.2;
  return [low >= 0 ? Math.max(0, low - margin) : low - margin, high + margin];
}
