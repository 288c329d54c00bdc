// Keyboard control of the picture: move between units and groups, select, zoom, drag modes.

import type { KeyboardEvent } from "react";
import type { Direction } from "../../../layers/squares/pick-grid.ts";
import type { UnitLayout } from "../../../layout/layout.ts";
import { findSibling } from "./groups.ts";
import type { Stage } from "./stage.ts";
import type { PointerMode } from "./use-pointer.ts";

export const ZOOM_STEP = 1.4;

const DIRECTIONS: Readonly<Record<string, Direction>> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
};

/** Pressing the key of a mode once more goes back to panning. */
const MODES: Readonly<Record<string, PointerMode>> = { b: "box", l: "lasso" };

export const KEY_WORDS =
  "Arrow keys move from unit to unit, brackets from group to group. Enter selects the unit, G its group and once more the " +
  "group around it, Z zooms to the group, Backspace goes back, plus and minus zoom, 0 fits. R packs the groups again. B draws a box, L a loop.";

export interface KeyTargets {
  readonly stage: Stage | null;
  readonly layout: UnitLayout | null;
  /** The focused row, or the one that is pointed at. */
  readonly from: number | null;
  readonly focused: number | null;
  readonly mode: PointerMode;
  /** The group that G has selected last, of the focused row. */
  readonly groupOfFocus: number | null;
  focus(row: number): void;
  choose(row: number): void;
  chooseGroup(group: number): void;
  setMode(mode: PointerMode): void;
  repack(): void;
  /** Whether there was something being drawn to give up. */
  cancel(): boolean;
}

export function handleKey(event: KeyboardEvent, targets: KeyTargets): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (pressKey(event.key, targets)) event.preventDefault();
}

/** Whether the key means something here. */
function pressKey(key: string, targets: KeyTargets): boolean {
  const { stage, layout, from, focused, mode } = targets;
  const direction = DIRECTIONS[key];
  const chosenMode = MODES[key.toLowerCase()];
  if (direction) walk(targets, from === null ? null : (stage?.grid?.findNext(from, direction) ?? from));
  else if (key === "[" || key === "]") walkGroups(targets, key === "]" ? 1 : -1);
  else if (key === "Enter" && focused !== null) targets.choose(focused);
  else if (key === "g" || key === "G") chooseGroup(targets);
  else if ((key === "z" || key === "Z") && layout && from !== null) stage?.zoomToGroup(layout.group[from] ?? 0);
  else if (key === "Backspace") stage?.goBack();
  else if (key === "0") stage?.fit();
  else if (key === "+" || key === "=") stage?.zoomMiddle(ZOOM_STEP);
  else if (key === "-") stage?.zoomMiddle(1 / ZOOM_STEP);
  else if (key === "r" || key === "R") targets.repack();
  else if (chosenMode) targets.setMode(mode === chosenMode ? "pan" : chosenMode);
  else if (key === "Escape") {
    if (targets.cancel()) return true;
    if (mode === "pan") return false;
    targets.setMode("pan");
  } else return false;
  return true;
}

function walk({ stage, layout, focus }: KeyTargets, next: number | null): void {
  const row = next ?? firstRow(layout, null);
  if (row === null) return;
  stage?.reveal(row);
  focus(row);
}

function walkGroups(targets: KeyTargets, step: 1 | -1): void {
  const { layout, from } = targets;
  if (layout === null) return;
  const next = from === null ? null : findSibling(layout, layout.group[from] ?? 0, step);
  walk(targets, next === null ? from : firstRow(layout, next));
}

/** Of the group first, then of the one around it. */
function chooseGroup({ layout, from, groupOfFocus, chooseGroup: choose }: KeyTargets): void {
  if (layout === null || from === null) return;
  const innermost = layout.group[from] ?? 0;
  const parent = groupOfFocus === null ? 0 : (layout.groups.parent[groupOfFocus] ?? 0);
  const group = groupOfFocus !== null && parent > 0 ? parent : innermost;
  if (group > 0) choose(group);
}

function firstRow(layout: UnitLayout | null, group: number | null): number | null {
  const row = layout?.size.findIndex((size, at) => size > 0 && (group === null || layout.group[at] === group)) ?? -1;
  return row < 0 ? null : row;
}
