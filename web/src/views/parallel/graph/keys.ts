// Keyboard actions of a graph. Pure: maps a key and the current state to an action.

import type { NsWindow } from "../../../state/parallel.ts";
import type { GraphStage } from "./stage.ts";
import { moveWindow, padWindow, zoomWindow } from "./windows.ts";

export type KeyAction =
  | { readonly kind: "window"; readonly window: NsWindow }
  | { readonly kind: "select"; readonly span: number | null }
  | { readonly kind: "reset" | "all" | "back" | "forward" };

export const KEYS_HELP =
  "Arrows move in time, + and − zoom, 0 shows the step, A all steps, [ and ] go back and forward; " +
  "comma and period select the previous and next span, up and down a span of another row, Enter zooms to it.";

const PAN_SHARE = 0.2;
const ZOOM_IN = 0.7;
const PADDING = 2;

interface GraphState {
  readonly stage: GraphStage;
  readonly extent: NsWindow;
  /** An index of the spans. */
  readonly selected: number | null;
}

export function findKeyAction(key: string, { stage, extent, selected }: GraphState): KeyAction | null {
  const { window } = stage;
  const middle = (window.fromNs + window.toNs) / 2;
  switch (key) {
    case "ArrowLeft":
      return { kind: "window", window: moveWindow(window, -PAN_SHARE, extent) };
    case "ArrowRight":
      return { kind: "window", window: moveWindow(window, PAN_SHARE, extent) };
    case "+":
    case "=":
      return { kind: "window", window: zoomWindow(window, middle, ZOOM_IN, extent) };
    case "-":
      return { kind: "window", window: zoomWindow(window, middle, 1 / ZOOM_IN, extent) };
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
      return selectNext(key, stage, selected);
    case "Enter":
      return zoomToSelected(stage, selected, extent);
    default:
      return null;
  }
}

function selectNext(
  key: "," | "." | "ArrowUp" | "ArrowDown",
  stage: GraphStage,
  selected: number | null,
): KeyAction | null {
  const { index } = stage;
  if (index === null) return null;
  if (selected === null) return { kind: "select", span: index.findFirst(stage.window.fromNs) };
  const step = key === "," || key === "ArrowUp" ? -1 : 1;
  const span = key === "," || key === "." ? index.findNeighbor(selected, step) : index.findBeside(selected, step);
  return span === null ? null : { kind: "select", span };
}

function zoomToSelected(stage: GraphStage, selected: number | null, extent: NsWindow): KeyAction | null {
  const spans = stage.drawn?.marey.spans;
  if (selected === null || !spans) return null;
  const [from, to] = [spans.startNs[selected] ?? 0, spans.endNs[selected] ?? 0];
  return { kind: "window", window: padWindow(from, to, PADDING, extent) };
}
