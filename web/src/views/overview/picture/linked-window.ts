// Describes the visible part of the picture relative to a group of the layout, and finds it again in another layout.
// Pure.

import { labelOf, type UnitLayout } from "../../../layout/layout.ts";
import type { PictureWindow } from "../../../state/window.ts";
import type { Box, Size } from "./camera.ts";
import { findPath, groupBox } from "./groups.ts";

/** `space`: what the layout was made for. */
export function describeWindow(layout: UnitLayout, seen: Box, space: Size): PictureWindow {
  const path = findPath(layout, seen);
  const anchor = groupBox(layout, path.at(-1) ?? 0);
  return {
    x: (seen.left + seen.width / 2 - anchor.left) / Math.max(1, anchor.width),
    y: (seen.top + seen.height / 2 - anchor.top) / Math.max(1, anchor.height),
    width: seen.width,
    height: seen.height,
    space,
    group: path.map((group) => labelOf(layout, group)),
  };
}

/** Where it is in this layout; a group that is gone is stood for by the one around it. */
export function findWindow(layout: UnitLayout, { x, y, width, height, group }: PictureWindow): Box {
  const anchor = groupBox(layout, findNamed(layout, group));
  return {
    left: anchor.left + x * anchor.width - width / 2,
    top: anchor.top + y * anchor.height - height / 2,
    width,
    height,
  };
}

function findNamed(layout: UnitLayout, names: readonly string[]): number {
  const { parent, count } = layout.groups;
  let match = 0;
  for (const name of names) {
    let next: number | null = null;
    for (let group = match + 1; group < count && next === null; group += 1) {
      if (parent[group] === match && labelOf(layout, group) === name) next = group;
    }
    if (next === null) return match;
    match = next;
  }
  return match;
}
