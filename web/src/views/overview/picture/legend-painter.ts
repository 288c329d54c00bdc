// Paints the legend of an exported picture in one line below it.

import { formatCount } from "../../../base/format.ts";
import type { Pen } from "../../../charts/pen.ts";
import type { PackedColor } from "../../../layers/squares/marks.ts";
import { formatEnds } from "../filter/number-words.ts";
import type { Size } from "./camera.ts";
import type { Legend } from "./color/coloring.ts";
import { NO_COLOR } from "./color/name-color.ts";
import { FONT } from "./group-painter.ts";
import { type Tokens, toCss } from "./tokens.ts";

export const LEGEND_HEIGHT = 34;
const RAMP = { width: 180, height: 10 } as const;
const SWATCH_PX = 10;
const GAP_PX = 8;
/** As many names as a line may hold. */
const MOST_NAMES = 12;

export function paintLegend(pen: Pen, legend: Legend, left: number, top: number, space: Size, tokens: Tokens): void {
  pen.globalAlpha = 1;
  const baseline = top + LEGEND_HEIGHT / 2 + 4;
  let x = left + write(pen, legend.attribute.title, left, baseline, 600, tokens.text) + 2 * GAP_PX;
  if (legend.kind === "number") paintRamp(pen, legend, x, baseline, tokens);
  else {
    for (const { name, color, count } of listNames(legend)) {
      const text = `${name} ${formatCount(count)}`;
      if (x + SWATCH_PX + GAP_PX + text.length * 7 > left + space.width) break;
      fillBox(pen, x, baseline - SWATCH_PX + 1, SWATCH_PX, SWATCH_PX, color);
      x += SWATCH_PX + 5;
      x += write(pen, text, x, baseline, 400, tokens.muted) + 2 * GAP_PX;
    }
  }
}

function paintRamp(
  pen: Pen,
  { histogram, ramp, attribute }: Extract<Legend, { kind: "number" }>,
  left: number,
  baseline: number,
  tokens: Tokens,
): void {
  const [low, high] = formatEnds(histogram, attribute.unit);
  let x = left + write(pen, low, left, baseline, 400, tokens.muted) + GAP_PX;
  const step = RAMP.width / ramp.length;
  ramp.forEach((color, index) => {
    fillBox(pen, x + index * step, baseline - RAMP.height + 1, step + 0.5, RAMP.height, color);
  });
  x += RAMP.width + GAP_PX;
  write(pen, high, x, baseline, 400, tokens.muted);
}

interface NamedColor {
  readonly name: string;
  readonly color: PackedColor;
  readonly count: number;
}

function listNames({ column, titles, colors, kept }: Extract<Legend, { kind: "name" }>): readonly NamedColor[] {
  return column.names
    .map((name, code) => ({
      name: (titles?.[code] ?? name ?? "").replaceAll("_", " "),
      color: colors[code] ?? NO_COLOR,
      count: kept[code] ?? 0,
    }))
    .filter(({ name, color, count }) => name !== "" && color !== NO_COLOR && count > 0)
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1))
    .slice(0, MOST_NAMES);
}

function fillBox(pen: Pen, x: number, y: number, width: number, height: number, color: PackedColor): void {
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.fillStyle = toCss(color);
  pen.fill();
}

/** How wide it is. */
export function write(pen: Pen, text: string, x: number, y: number, weight: number, color: PackedColor): number {
  pen.textBaseline = "alphabetic";
  pen.font = `${weight} 12px ${FONT}`;
  pen.fillStyle = toCss(color);
  pen.fillText(text, x, y);
  return pen.measureText(text).width;
}
