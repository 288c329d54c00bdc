// Stacked columns over named steps, such as days: one color per part, values on hover or by arrow keys.

import { type KeyboardEvent, type PointerEvent, useState } from "react";
import { ChartTip } from "./chart-tip.tsx";
import { Plot, usePlotArea } from "./plot.tsx";
import { linearScale, type Scale } from "./scales.ts";

export interface ColumnPart {
  readonly key: string;
  readonly title: string;
  readonly color: string;
  /** One per column; parts stand on each other in their order. */
  readonly values: readonly number[];
}

interface StackedColumnsProps {
  readonly label: string;
  /** Below every column, as far as there is room. */
  readonly titles: readonly string[];
  readonly parts: readonly ColumnPart[];
  readonly yTitle: string;
  readonly height?: number;
  sayValue(value: number): string;
}

const GAP = 0.16;
const Y_TICKS = 5;

export function StackedColumns({ label, titles, parts, yTitle, height = 220, sayValue }: StackedColumnsProps) {
  const totals = titles.map((_, at) => parts.reduce((sum, { values }) => sum + (values[at] ?? 0), 0));
  const y = linearScale(0, Math.max(...totals, Number.MIN_VALUE) * 1.04, Y_TICKS, sayValue);
  const x = nameScale(titles);
  const [place, area] = usePlotArea(x, y, 58);
  const [pointed, setPointed] = useState<number | null>(null);
  const width = area.width / Math.max(1, titles.length);
  const onPointerMove = (event: PointerEvent) => {
    const box = place.current?.getBoundingClientRect();
    const at = box ? Math.floor((event.clientX - box.left - area.left) / width) : -1;
    setPointed(at >= 0 && at < titles.length ? at : null);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    setPointed(Math.min(titles.length - 1, Math.max(0, (pointed ?? (move > 0 ? -1 : titles.length)) + move)));
  };
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
      <Plot area={area} x={x} y={y} xTitle="" yTitle={yTitle}>
        {titles.map((title, at) => {
          let below = 0;
          return (
            <g key={title} opacity={pointed === null || pointed === at ? 1 : 0.55}>
              {parts.map(({ key, color, values }) => {
                const value = values[at] ?? 0;
                const [top, bottom] = [area.toY(below + value), area.toY(below)];
                below += value;
                if (bottom - top < 0.05) return null;
                return (
                  <rect
                    key={key}
                    x={area.left + (at + GAP / 2) * width}
                    y={top}
                    width={Math.max(0.5, width * (1 - GAP))}
                    height={bottom - top}
                    fill={color}
                  />
                );
              })}
            </g>
          );
        })}
      </Plot>
      {pointed !== null && (
        <ChartTip
          at={(area.left + (pointed + 0.5) * width) / (area.left + area.width + 12)}
          title={`${titles[pointed]}: ${sayValue(totals[pointed] ?? 0)}`}
          rows={parts
            .filter(({ values }) => (values[pointed] ?? 0) > 0)
            .map((part) => ({ ...part, text: sayValue(part.values[pointed] ?? 0) }))}
        />
      )}
    </div>
  );
}

/** Names stand in the middle of equal columns. */
function nameScale(titles: readonly string[]): Scale {
  const count = Math.max(1, titles.length);
  return {
    low: 0,
    high: count,
    ticks: titles.map((text, at) => ({ at: at + 0.5, text })),
    place: (value) => value / count,
    valueAt: (place) => place * count,
    say: (value) => titles[Math.floor(value)] ?? "",
  };
}
