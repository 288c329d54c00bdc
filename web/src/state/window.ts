// The visible part of the picture as text for a link, relative to a group: on another screen, or an hour later, the
// same group may be elsewhere.

import type { Field } from "./fields.ts";

export interface PictureWindow {
  /** The middle, as shares of the width and height of the group. */
  readonly x: number;
  readonly y: number;
  /** In sides of a unit. */
  readonly width: number;
  readonly height: number;
  /** The space of the layout, in page pixels: another space gives another layout. */
  readonly space: { readonly width: number; readonly height: number };
  /** The names of the group and its ancestors, outermost first; empty: everything. */
  readonly group: readonly string[];
}

const NUMBER = "-?\\d{1,7}(?:\\.\\d{1,4})?";
const PATTERN = new RegExp(`^(${NUMBER}),(${NUMBER}),(${NUMBER}),(${NUMBER}),(\\d{1,5})x(\\d{1,5})((?:/[^/]+)*)$`);
const MOST_LAYERS = 16;

export const windowField: Field<PictureWindow | null> = {
  key: "viewport",
  initial: null,
  parse: ([text = ""]) => parseWindow(text),
  serialize: (window) => (window === null ? [] : [serializeWindow(window)]),
};

export function serializeWindow({ x, y, width, height, space, group }: PictureWindow): string {
  const numbers = [x, y, width, height].map((value) => String(round(value)));
  const names = group.map((name) => `/${encodeURIComponent(name.toWellFormed())}`);
  return `${numbers.join(",")},${Math.round(space.width)}x${Math.round(space.height)}${names.join("")}`;
}

function round(value: number): number {
  // Never −0, which is written as 0.
  return Math.round(value * 1e4) / 1e4 || 0;
}

function parseWindow(text: string): PictureWindow | undefined {
  const match = PATTERN.exec(text);
  if (match === null) return undefined;
  const [x = 0, y = 0, width = 0, height = 0, spaceWidth = 0, spaceHeight = 0] = match.slice(1, 7).map(Number);
  const names = (match[7] ?? "").split("/").slice(1);
  if (width <= 0 || height <= 0 || spaceWidth === 0 || spaceHeight === 0 || names.length > MOST_LAYERS)
    return undefined;
  try {
    const group = names.map((name) => decodeURIComponent(name));
    return { x, y, width, height, space: { width: spaceWidth, height: spaceHeight }, group };
  } catch {
    return undefined;
  }
}
