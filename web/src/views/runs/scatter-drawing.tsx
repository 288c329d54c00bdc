// Scatter plot of two quantities, one point per run: joules per sample by throughput, loss by batch size.

import type { RunRow } from "../../api/generated.ts";
import { isKnown } from "../../base/format.ts";
import { Plot, usePlotArea } from "../../charts/plot.tsx";
import { linearScale } from "../../charts/scales.ts";
import { changeRuns, openRun, type RunsPage } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import styles from "./charts.module.css";
import { describeUnfinished, type RunGroup } from "./groups.ts";
import { RunLegend } from "./legend.tsx";
import { formatNumber, type RunQuantity } from "./quantities.ts";

interface ScatterDrawingProps {
  readonly page: RunsPage;
  readonly groups: readonly RunGroup[];
  readonly quantities: readonly RunQuantity[];
}

/** Width of the axis labels. */
const LEFT_PX = 64;
const MAX_TICKS = 10;

export function ScatterDrawing({ page, groups, quantities }: ScatterDrawingProps) {
  const x = choose(page.x, ["throughput", "gpu_util", "running"], quantities);
  const y = choose(page.y, ["joules_per_work", "energy", "power"], quantities, x);
  return (
    <>
      <RunLegend groups={groups} />
      <section className={styles.wide} aria-label="Scatter plot">
        <div className={styles.axes}>
          <QuantityChoice label="Vertical axis" value={y} quantities={quantities} field="y" />
          by
          <QuantityChoice label="Horizontal axis" value={x} quantities={quantities} field="x" />
        </div>
        {x && y && <Points x={x} y={y} groups={groups} open={page.open} />}
      </section>
    </>
  );
}

function choose(
  requested: string,
  defaults: readonly string[],
  quantities: readonly RunQuantity[],
  other?: RunQuantity,
): RunQuantity | undefined {
  const candidates = [requested, ...defaults].map((key) =>
    quantities.find((quantity) => quantity.key === key && quantity !== other),
  );
  return candidates.find(Boolean) ?? quantities.find((quantity) => quantity !== other);
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
  const points = groups.flatMap((group) =>
    group.rows.flatMap((row) => {
      const [right, up] = [x.of(row), y.of(row)];
      return isKnown(right) && isKnown(up) ? [{ row, group, right, up }] : [];
    }),
  );
  const xScale = linearScale(...pad(points.map(({ right }) => right)), MAX_TICKS, (value) =>
    formatNumber(value, x.unit),
  );
  const yScale = linearScale(...pad(points.map(({ up }) => up)), MAX_TICKS, (value) => formatNumber(value, y.unit));
  const [place, area] = usePlotArea(xScale, yScale, LEFT_PX);
  return (
    <div ref={place} data-figure={true} style={{ flex: 1, minHeight: 0 }}>
      <Plot area={area} x={xScale} y={yScale} xTitle={x.title} yTitle={y.title} label={`${y.title} by ${x.title}`}>
        {points.map(({ row, group, right, up }) => (
          // biome-ignore lint/a11y/useSemanticElements: an SVG circle cannot be a button
          <circle
            key={row.run}
            role="button"
            tabIndex={0}
            className={styles.point}
            cx={area.toX(right)}
            cy={area.toY(up)}
            r={row.run === open ? 8 : 5.5}
            {...fillOf(row, group)}
            data-tip={[
              `${group.label}: ${formatNumber(up, y.unit)} at ${formatNumber(right, x.unit)}`,
              describeUnfinished([row]),
            ]
              .filter(Boolean)
              .join(", ")}
            onClick={() => change(openRun(row))}
            onKeyDown={(event) => {
              if (event.key === "Enter" || event.key === " ") change(openRun(row));
            }}
          />
        ))}
      </Plot>
      {points.length === 0 && <p>No run has both quantities.</p>}
    </div>
  );
}

/** A run that did not complete is an outline. */
function fillOf(row: RunRow, { color }: RunGroup) {
  return describeUnfinished([row]) === null
    ? { fill: color, fillOpacity: 0.85, stroke: "var(--panel)" }
    : { fill: "var(--panel)", stroke: color, strokeWidth: 2, strokeDasharray: "3 2", "data-unfinished": true };
}

function pad(values: readonly number[]): [low: number, high: number] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (!(high >= low)) return [0, 1];
  const margin = high > low ? (high - low) * 0.08 : Math.abs(high || 1) * 0.2;
  return [low >= 0 ? Math.max(0, low - margin) : low - margin, high + margin];
}
