// Lines or steps over one axis, several in one chart, each in its color; pointing, or the arrow keys, read all of them at a place.

import { type KeyboardEvent, type PointerEvent, useRef, useState } from "react";
import { useSize } from "../../../charts/canvas.tsx";
import type { Scale } from "./scales.ts";
import styles from "./xy-chart.module.css";

export interface Series {
  readonly key: string;
  readonly title: string;
  readonly color: string;
  /** Rising. */
  readonly xs: readonly number[];
  readonly ys: readonly number[];
  readonly look: "step" | "line" | "area";
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

const LEFT_PX = 46;
const RIGHT_PX = 12;
const TOP_PX = 8;
const BOTTOM_PX = 34;
const LABEL_PX = 48;
const LINE_PX = 14;

export function XyChart(props: XyChartProps) {
  const { label, x, y, xTitle, yTitle, series, height = 210, hasDiagonal = false } = props;
  const place = useRef<HTMLDivElement>(null);
  const { width } = useSize(place);
  const [pointed, setPointed] = useState<number | null>(null);
  const inner = Math.max(1, width - LEFT_PX - RIGHT_PX);
  const tall = height - TOP_PX - BOTTOM_PX;
  const toX = (value: number) => LEFT_PX + x.place(value) * inner;
  const toY = (value: number) => TOP_PX + (1 - y.place(value)) * tall;
  const onPointerMove = (event: PointerEvent) => {
    const box = place.current?.getBoundingClientRect();
    const ratio = box ? (event.clientX - box.left - LEFT_PX) / inner : 0;
    setPointed(ratio < 0 || ratio > 1 ? null : ratio);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const next = walk(event.key, pointed, event.shiftKey);
    if (next === undefined) return;
    event.preventDefault();
    setPointed(next);
  };
  return (
    <div
      ref={place}
      className={styles.chart}
      style={{ height }}
      role="img"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: so that the keyboard reads the chart, too
      tabIndex={0}
      onPointerMove={onPointerMove}
      onPointerLeave={() => setPointed(null)}
      onBlur={() => setPointed(null)}
      onKeyDown={onKeyDown}
    >
      {width > 0 && (
        <svg aria-hidden="true" width={width} height={height}>
          {thin(
            y.ticks.map(({ at, text }) => ({ at: -toY(at), text })),
            LINE_PX,
          ).map(({ at, text }) => (
            <g key={at}>
              <path className={styles.grid} d={`M${LEFT_PX} ${round(-at)}h${inner}`} />
              <text x={LEFT_PX - 6} y={3.5 - at} textAnchor="end">
                {text}
              </text>
            </g>
          ))}
          {thin(
            x.ticks.map(({ at, text }) => ({ at: toX(at), text })),
            LABEL_PX,
          ).map(({ at, text }) => (
            <g key={at}>
              <path className={styles.grid} d={`M${round(at)} ${TOP_PX}v${tall}`} />
              <text x={clamp(at, LEFT_PX + 8, width - 18)} y={height - BOTTOM_PX + 14} textAnchor="middle">
                {text}
              </text>
            </g>
          ))}
          <text className={styles.title} x={LEFT_PX + inner} y={height - 4} textAnchor="end">
            {xTitle}
          </text>
          <text className={styles.title} x={LEFT_PX} y={height - 4}>
            ↑ {yTitle}
          </text>
          {hasDiagonal && (
            <path className={styles.diagonal} d={`M${LEFT_PX} ${TOP_PX + tall}L${LEFT_PX + inner} ${TOP_PX}`} />
          )}
          {series.map((each) => (
            <path
              key={each.key}
              d={drawPath(each, toX, toY, TOP_PX + tall)}
              fill={each.look === "area" ? each.color : "none"}
              fillOpacity={0.25}
              stroke={each.color}
              strokeWidth={1.6}
              strokeLinejoin="round"
            />
          ))}
          {series
            .filter(({ hasDots }) => hasDots)
            .map(({ key, color, xs, ys }) =>
              xs.map((value, at) => (
                <circle key={`${key} ${value}`} cx={toX(value)} cy={toY(ys[at] ?? 0)} r={3.5} fill={color} />
              )),
            )}
          {pointed !== null && <path className={styles.cursor} d={`M${LEFT_PX + pointed * inner} ${TOP_PX}v${tall}`} />}
        </svg>
      )}
      {pointed !== null && (
        <div className={styles.tip} style={placeTip(LEFT_PX + pointed * inner, width)} role="status">
          <b>{x.say(x.valueAt(pointed))}</b>
          {series.map((each) => {
            const value = readAt(each, x.valueAt(pointed));
            return (
              <span key={each.key}>
                <i data-swatch={true} style={{ background: each.color }} /> {each.title}{" "}
                <em>{value === null ? "–" : y.say(value)}</em>
              </span>
            );
          })}
        </div>
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

function drawPath(
  series: Series,
  toX: (value: number) => number,
  toY: (value: number) => number,
  floor: number,
): string {
  const { xs, ys, look } = series;
  if (xs.length === 0) return "";
  let path = "";
  for (let at = 0; at < xs.length; at += 1) {
    const [px, py] = [round(toX(xs[at] ?? 0)), round(toY(ys[at] ?? 0))];
    if (at === 0) path = look === "step" ? `M${px} ${round(toY(0))}V${py}` : `M${px} ${py}`;
    else path += look === "step" ? `H${px}V${py}` : `L${px} ${py}`;
  }
  if (look === "area") path += `V${floor}H${round(toX(xs[0] ?? 0))}Z`;
  return path;
}

/** The last known value up to there; null before the first. */
export function readAt({ xs, ys }: Pick<Series, "xs" | "ys">, at: number): number | null {
  let [low, high] = [0, xs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((xs[middle] ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? null : (ys[low - 1] ?? null);
}

/** Labels that would touch the one before are left out. */
function thin(ticks: readonly { readonly at: number; readonly text: string }[], leastPx: number) {
  let last = Number.NEGATIVE_INFINITY;
  return ticks.filter(({ at }) => {
    if (at - last < leastPx) return false;
    last = at;
    return true;
  });
}

function placeTip(atPx: number, width: number) {
  return atPx < width / 2 ? { left: atPx + 10 } : { right: width - atPx + 10 };
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
