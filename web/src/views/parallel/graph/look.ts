// The page's colors for what is drawn and not styled: as canvases and as the layer understand them.

import { rampColor } from "../../../base/ramp.ts";
import type { Ink } from "../../../charts/canvas.tsx";
import type { PackedColor } from "../../../layers/marey/marks.ts";
import { KIND_COLORS, type SpanKind } from "./kinds.ts";
import type { PaintTokens } from "./painter.ts";

/** `rgb(1, 2, 3)` and `rgb(1 2 3)`; black where it is neither. */
export function packColor(css: string): PackedColor {
  const [red = 0, green = 0, blue = 0] = (css.match(/\d+(\.\d+)?/g) ?? []).map(Number);
  return (Math.round(red) << 16) | (Math.round(green) << 8) | Math.round(blue);
}

export function packKind(ink: Ink): (kind: SpanKind) => PackedColor {
  return (kind) => packColor(ink(KIND_COLORS[kind]));
}

const packed = new Map<number, PackedColor>();

/** Of a share 0–1 to a hundredth. */
export function packRamp(share: number): PackedColor {
  const step = Math.round(Math.min(1, Math.max(0, share)) * 100);
  let color = packed.get(step);
  if (color === undefined) {
    color = packColor(rampColor(step / 100));
    packed.set(step, color);
  }
  return color;
}

export function readPaintTokens(ink: Ink): PaintTokens {
  return {
    line: ink("var(--hairline)"),
    hairline: ink("var(--hairline)"),
    text: ink("var(--text)"),
    muted: ink("var(--muted)"),
    accent: ink("var(--accent)"),
    panel: ink("var(--panel)"),
  };
}
