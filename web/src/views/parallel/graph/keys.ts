// What keys do on a graph. Pure: from a key and what is shown to what shall happen.

import type { NsWindow } from "../../../state/parallel.ts";
import type { GraphStage } from "./stage.ts";
import { aroundWindow, moveWindow, zoomWindow } from "./windows.ts";

export type KeyDeed =
  | { readonly kind: "window"; readonly window: NsWindow }
  | { readonly kind: "select"; readonly span: number | null }
  | { readonly kind: "reset" | "all" | "back" | "forward" };

export const KEYS_HELP =
  "Arrows move in time, + and − zoom, 0 shows the step, A all steps, [ and ] go back and forward; " +
  "comma and period walk from span to span, up and down from row to row, Enter zooms to it.";

const MOVE = 0.2;
const CLOSER = 0.7;
const AIR = 2;

interface Shown {
  readonly stage: GraphStage;
  readonly extent: NsWindow;
  /** A place in the table of spans. */
  readonly selected: number | null;
}

export function findDeed(key: string, { stage, extent, selected }: Shown): KeyDeed | null {
  const { window } = stage;
  const middle = (window.fromNs + window.toNs) / 2;
  switch (key) {
    case "ArrowLeft":
      return { kind: "window", window: moveWindow(window, -MOVE, extent) };
    case "ArrowRight":
      return { kind: "window", window: moveWindow(window, MOVE, extent) };
    case "+":
    case "=":
      return { kind: "window", window: zoomWindow(window, middle, CLOSER, extent) };
    case "-":
      return { kind: "window", window: zoomWindow(window, middle, 1 / CLOSER, extent) };
    case "0":
      return { kind: "reset" };
    case "a":
    case "A":
      return { kind: "all" };
    case "[":
    case "Backspace":
      return { kind: "back" };
    case "]":
      return { kind: "forward" };
    case "Escape":
      return { kind: "select", span: null };
    case ",":
    case ".":
    case "ArrowUp":
    case "ArrowDown":
      return walk(key, stage, selected);
    case "Enter":
      return zoomToSelected(stage, selected, extent);
    default:
      return null;
  }
}

function walk(key: "," | "." | "ArrowUp" | "ArrowDown", stage: GraphStage, selected: number | null): KeyDeed | null {
  const { index } = stage;
  if (index === null) return null;
  if (selected === null) return { kind: "select", span: index.findFirst(stage.window.fromNs) };
  const step = key === "," || key === "ArrowUp" ? -1 : 1;
  const span = key === "," || key === "." ? index.findNeighbor(selected, step) : index.findBeside(selected, step);
  return span === null ? null : { kind: "select", span };
}

function zoomToSelected(stage: GraphStage, selected: number | null, extent: NsWindow): KeyDeed | null {
  const spans = stage.drawn?.marey.spans;
  if (selected === null || !spans) return null;
  const [from, to] = [spans.startNs[selected] ?? 0, spans.endNs[selected] ?? 0];
  return { kind: "window", window: aroundWindow(from, to, AIR, extent) };
}
