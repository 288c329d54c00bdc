// Colors of the page for canvases and for the WebGL layer.

import { rampColor } from "../../../base/ramp.ts";
import type { Ink } from "../../../charts/canvas.tsx";
import type { PackedColor } from "../../../layers/marey/marks.ts";
import { KIND_COLORS, type SpanKind } from "./kinds.ts";
import type { PaintTokens } from "./painter.ts";

/** Parses `rgb(1, 2, 3)` and `rgb(1 2 3)`; else black. */
export function packColor(css: string): PackedColor {
  const [red = 0, green = 0, blue = 0] = (css.match(/\d+(\.\d+)?/g) ?? []).map(Number);
  return (Math.round(red) << 16) | (Math.round(green) << 8) | Math.round(blue);
}

export function packKind(ink: Ink): (kind: SpanKind) => PackedColor {
  return (kind) => packColor(ink(KIND_COLORS[kind]));
}

const rampCache = new Map<number, PackedColor>();

/** The color of a share 0–1, rounded to 0.01. */
export function packRamp(share: number): PackedColor {
  const step = Math.round(Math.min(1, Math.max(0, share)) * 100);
  let color = rampCache.get(step);
  if (color === undefined) {
    color = packColor(rampColor(step / 100));
    rampCache.set(step, color);
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
