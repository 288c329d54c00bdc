// Axes, gridlines and titles of a chart drawn as SVG.

import { type ReactNode, type RefObject, useRef } from "react";
import { useSize } from "./canvas.tsx";
import styles from "./chart.module.css";
import { type Scale, thinTicks } from "./scales.ts";

/** Pixels of a plot: where its inside is, and where values stand in it. */
export interface PlotArea {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  toX(value: number): number;
  toY(value: number): number;
}

const MARGIN = { left: 46, right: 12, top: 8, bottom: 34 };
const LABEL_PX = 48;
const LINE_PX = 14;

/** The area of a plot in an element, and its scales there. */
export function usePlotArea(x: Scale, y: Scale, left = MARGIN.left): [RefObject<HTMLDivElement | null>, PlotArea] {
  const place = useRef<HTMLDivElement>(null);
  const size = useSize(place);
  const width = Math.max(1, size.width - left - MARGIN.right);
  const height = Math.max(1, size.height - MARGIN.top - MARGIN.bottom);
  const area: PlotArea = {
    left,
    top: MARGIN.top,
    width,
    height,
    toX: (value) => left + x.place(value) * width,
    toY: (value) => MARGIN.top + (1 - y.place(value)) * height,
  };
  return [place, area];
}

interface PlotProps {
  readonly area: PlotArea;
  readonly x: Scale;
  readonly y: Scale;
  readonly xTitle: string;
  readonly yTitle?: string;
  /** Where its parts are read one by one, what the drawing is as a whole. */
  readonly label?: string;
  readonly children: ReactNode;
}

export function Plot({ area, x, y, xTitle, yTitle, label, children }: PlotProps) {
  const { left, top, width, height, toX, toY } = area;
  const [right, bottom] = [left + width, top + height];
  const [wide, tall] = [right + MARGIN.right, bottom + MARGIN.bottom];
  if (width <= 1) return null;
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: named by its label, or hidden where the element around it is named
    <svg
      className={styles.plot}
      width={wide}
      height={tall}
      {...(label === undefined ? { "aria-hidden": true } : { role: "img", "aria-label": label })}
    >
      {thinTicks(y.ticks, (value) => -toY(value), LINE_PX).map(({ at, text }) => (
        <g key={at}>
          <path className={styles.grid} d={`M${left} ${round(toY(at))}h${width}`} />
          <text x={left - 6} y={toY(at) + 3.5} textAnchor="end">
            {text}
          </text>
        </g>
      ))}
      {thinTicks(x.ticks, toX, LABEL_PX).map(({ at, text }) => (
        <g key={at}>
          <path className={styles.grid} d={`M${round(toX(at))} ${top}v${height}`} />
          <text x={Math.min(wide - 18, Math.max(left + 8, toX(at)))} y={bottom + 14} textAnchor="middle">
            {text}
          </text>
        </g>
      ))}
      <text x={right} y={tall - 4} textAnchor="end">
        {xTitle}
      </text>
      {yTitle !== undefined && (
        <text x={left} y={tall - 4}>
          ↑ {yTitle}
        </text>
      )}
      {children}
    </svg>
  );
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
