// What the mouse does on a graph: drag to look closer, Shift and drag to move, the wheel to zoom about the pointer, click to
// select. While something moves only the stage knows; when it rests, the page is told.

import { type PointerEvent, type RefObject, useEffect, useRef, useState } from "react";
import type { NsWindow } from "../../../state/parallel.ts";
import type { GraphStage, Hit } from "./stage.ts";
import { moveWindow, zoomWindow } from "./windows.ts";

export interface Pointed extends Hit {
  /** Page pixels within the drawing. */
  readonly x: number;
  readonly y: number;
}

interface GestureOptions {
  readonly stage: GraphStage | null;
  readonly place: RefObject<HTMLElement | null>;
  readonly extent: NsWindow;
  /** `isStep`: one to come back to, not one of many small ones. */
  onWindow(window: NsWindow, isStep: boolean): void;
  onSelect(hit: Hit | null): void;
}

const LEAST_DRAG_PX = 4;
const REST_MS = 90;
const WHEEL_ZOOM = 0.0016;
const LINE_PX = 16;

interface Drag {
  readonly x: number;
  readonly kind: "brush" | "move";
  readonly from: NsWindow;
  isMoved: boolean;
}

export function useGestures({ stage, place, extent, onWindow, onSelect }: GestureOptions) {
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const drag = useRef<Drag | null>(null);
  const settle = useSettle(stage, onWindow);
  const showFirst = useShowFirst();
  useWheel(stage, place, extent, settle);

  const placeOf = (event: PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top, width: box.width };
  };
  const point = (x: number, y: number) => {
    const hit = stage?.hit(x, y) ?? null;
    stage?.setLit(hit?.span ?? null);
    setPointed(hit && { ...hit, x, y });
  };
  const brushTo = (held: Drag, x: number): NsWindow => {
    const [a, b] = [stage?.timeAt(held.x) ?? 0, stage?.timeAt(x) ?? 0];
    return { fromNs: Math.min(a, b), toNs: Math.max(a, b) };
  };
  return {
    pointed,
    handlers: {
      onPointerDown(event: PointerEvent) {
        if (event.button > 1) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        const isMove = event.shiftKey || event.button === 1;
        drag.current = {
          x: placeOf(event).x,
          kind: isMove ? "move" : "brush",
          from: stage?.window ?? extent,
          isMoved: false,
        };
      },
      onPointerMove(event: PointerEvent) {
        const { x, y, width } = placeOf(event);
        const held = drag.current;
        if (held === null) {
          point(x, y);
          return;
        }
        const wasMoved = held.isMoved;
        held.isMoved ||= Math.abs(x - held.x) >= LEAST_DRAG_PX;
        if (!held.isMoved) return;
        if (!wasMoved) {
          stage?.setLit(null);
          setPointed(null);
        }
        if (held.kind === "brush") stage?.setBrush(brushTo(held, x));
        else {
          stage?.setWindow(moveWindow(held.from, (held.x - x) / Math.max(1, width), extent));
          settle();
        }
      },
      onPointerUp(event: PointerEvent) {
        const held = drag.current;
        drag.current = null;
        if (held === null) return;
        const { x, y } = placeOf(event);
        stage?.setBrush(null);
        if (!held.isMoved) onSelect(stage?.hit(x, y) ?? null);
        else if (held.kind === "brush") {
          const window = brushTo(held, x);
          stage?.setWindow(window);
          stage?.flush();
          showFirst(() => onWindow(window, true));
        }
      },
      onPointerCancel() {
        drag.current = null;
        stage?.setBrush(null);
      },
      onPointerLeave() {
        stage?.setLit(null);
        setPointed(null);
      },
    },
  };
}

/** Lets the frame with what was just drawn go to the screen before the rest is done: rendering the page anew takes longer. */
function useShowFirst(): (rest: () => void) => void {
  const waiting = useRef({ frame: 0, timer: 0 });
  useEffect(
    () => () => {
      cancelAnimationFrame(waiting.current.frame);
      clearTimeout(waiting.current.timer);
    },
    [],
  );
  return (rest) => {
    waiting.current.frame = requestAnimationFrame(() => {
      // Behind the frame: what runs in the callback itself still delays it.
      waiting.current.timer = window.setTimeout(rest);
    });
  };
}

/** Tells the page of the window when it has not moved for a moment. */
function useSettle(stage: GraphStage | null, onWindow: GestureOptions["onWindow"]): () => void {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const tell = useRef(onWindow);
  tell.current = onWindow;
  useEffect(() => () => clearTimeout(timer.current), []);
  return () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => stage && tell.current(stage.window, false), REST_MS);
  };
}

/** React listens passively to wheels, and this one must keep the page from scrolling. */
function useWheel(
  stage: GraphStage | null,
  place: RefObject<HTMLElement | null>,
  extent: NsWindow,
  settle: () => void,
): void {
  const latest = useRef({ extent, settle });
  latest.current = { extent, settle };
  useEffect(() => {
    const element = place.current;
    if (element === null || stage === null) return;
    const onWheel = (event: WheelEvent) => {
      event.preventDefault();
      const box = element.getBoundingClientRect();
      const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1;
      // Browsers turn Shift with the wheel into a sideways one, some of them.
      const aside = event.shiftKey ? event.deltaX + event.deltaY : event.deltaX;
      const isAside = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      const next = isAside
        ? moveWindow(stage.window, (aside * unit) / Math.max(1, box.width), latest.current.extent)
        : zoomWindow(
            stage.window,
            stage.timeAt(event.clientX - box.left),
            Math.exp(event.deltaY * unit * WHEEL_ZOOM),
            latest.current.extent,
          );
      stage.setWindow(next);
      latest.current.settle();
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [stage, place]);
}
