// Lines or steps over one axis, one color each; the pointer or the arrow keys read all values at a position.

import { type KeyboardEvent, type PointerEvent, useState } from "react";
import { ChartTip } from "./chart-tip.tsx";
import { Plot, type PlotArea, round, usePlotArea } from "./plot.tsx";
import { findLast, type Scale } from "./scales.ts";

export interface Series {
  readonly key: string;
  readonly title: string;
  readonly color: string;
  /** Rising. */
  readonly xs: readonly number[];
  readonly ys: readonly number[];
  readonly look: "step" | "line" | "area";
  /** The ends of each value's interval, drawn as a faint band. */
  readonly lows?: readonly number[];
  readonly highs?: readonly number[];
  /** Marks each value, where there are few. */
  readonly hasDots?: boolean;
}

interface XyChartProps {
  readonly label: string;
  readonly x: Scale;
  readonly y: Scale;
  readonly xTitle: string;
  readonly yTitle: string;
  readonly series: readonly Series[];
  readonly height?: number;
  /** A line from corner to corner: where both axes say the same. */
  readonly hasDiagonal?: boolean;
}

export function XyChart(props: XyChartProps) {
  const { label, x, y, xTitle, yTitle, series, height = 210, hasDiagonal = false } = props;
  const [place, area] = usePlotArea(x, y);
  const [pointed, setPointed] = useState<number | null>(null);
  const { left, top, width, toX, toY } = area;
  const onPointerMove = (event: PointerEvent) => {
    const box = place.current?.getBoundingClientRect();
    const ratio = box ? (event.clientX - box.left - left) / width : 0;
    setPointed(ratio < 0 || ratio > 1 ? null : ratio);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const next = walk(event.key, pointed, event.shiftKey);
    if (next === undefined) return;
    event.preventDefault();
    setPointed(next);
  };
  const at = pointed === null ? null : x.valueAt(pointed);
  return (
    <div
      ref={place}
      style={{ position: "relative", height, minWidth: 0 }}
      role="img"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: so that the keyboard reads the chart, too
      tabIndex={0}
      onPointerMove={onPointerMove}
      onPointerLeave={() => setPointed(null)}
      onBlur={() => setPointed(null)}
      onKeyDown={onKeyDown}
    >
      <Plot area={area} x={x} y={y} xTitle={xTitle} yTitle={yTitle}>
        {hasDiagonal && (
          <path
            fill="none"
            stroke="var(--faint)"
            strokeDasharray="4 4"
            d={`M${left} ${top + area.height}L${left + width} ${top}`}
          />
        )}
        {series.map(({ key, color, xs, lows, highs }) =>
          lows && highs ? <path key={key} d={drawBand(xs, lows, highs, area)} fill={color} fillOpacity={0.15} /> : null,
        )}
        {series.map((line) => (
          <path
            key={line.key}
            d={drawPath(line, area)}
            fill={line.look === "area" ? line.color : "none"}
            fillOpacity={0.25}
            stroke={line.color}
            strokeWidth={1.6}
            strokeLinejoin="round"
          />
        ))}
        {series
          .filter(({ hasDots }) => hasDots)
          .map(({ key, color, xs, ys }) =>
            xs.map((value, index) => (
              <circle key={`${key} ${value}`} cx={toX(value)} cy={toY(ys[index] ?? 0)} r={3.5} fill={color} />
            )),
          )}
        {at !== null && <path stroke="var(--muted)" strokeDasharray="2 2" d={`M${toX(at)} ${top}v${area.height}`} />}
      </Plot>
      {at !== null && (
        <ChartTip
          at={toX(at) / (left + width)}
          title={x.say(at)}
          rows={series.map((line) => {
            const value = readAt(line, at);
            return { ...line, text: value === null ? "–" : y.say(value) };
          })}
        />
      )}
    </div>
  );
}

const KEY_STEP = 0.02;
const LARGE_STEP = 0.1;

/** Where the keyboard points next, 0–1; null: nowhere, undefined: the key means nothing here. */
export function walk(key: string, pointed: number | null, isLarge: boolean): number | null | undefined {
  const step = isLarge ? LARGE_STEP : KEY_STEP;
  switch (key) {
    case "ArrowRight":
      return pointed === null ? 0 : Math.min(1, pointed + step);
    case "ArrowLeft":
      return pointed === null ? 1 : Math.max(0, pointed - step);
    case "Home":
      return 0;
    case "End":
      return 1;
    case "Escape":
      return pointed === null ? undefined : null;
    default:
      return undefined;
  }
}

function drawPath({ xs, ys, look }: Series, { top, height, toX, toY }: PlotArea): string {
  if (xs.length === 0) return "";
  let path = "";
  for (let at = 0; at < xs.length; at += 1) {
    const [px, py] = [round(toX(xs[at] ?? 0)), round(toY(ys[at] ?? 0))];
    if (at === 0) path = look === "step" ? `M${px} ${round(toY(0))}V${py}` : `M${px} ${py}`;
    else path += look === "step" ? `H${px}V${py}` : `L${px} ${py}`;
  }
  if (look === "area") path += `V${top + height}H${round(toX(xs[0] ?? 0))}Z`;
  return path;
}

function drawBand(
  xs: readonly number[],
  lows: readonly number[],
  highs: readonly number[],
  { toX, toY }: Pick<PlotArea, "toX" | "toY">,
): string {
  const points = (ys: readonly number[]) => xs.map((x, at) => `${round(toX(x))} ${round(toY(ys[at] ?? 0))}`);
  return xs.length === 0 ? "" : `M${[...points(highs), ...points(lows).reverse()].join("L")}Z`;
}

/** The last known value up to there; null before the first. */
export function readAt({ xs, ys }: Pick<Series, "xs" | "ys">, at: number): number | null {
  return ys[findLast(xs, at)] ?? null;
}
