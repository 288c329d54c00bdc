// Pointer gestures on a graph: drag to zoom, Shift and drag to pan, wheel to zoom at the pointer, click to select. Moves update the
// stage at once and the page when they end (debounced).

import { type PointerEvent, type RefObject, useEffect, useRef, useState } from "react";
import type { NsWindow } from "../../../state/parallel.ts";
import type { GraphStage, Hit } from "./stage.ts";
import { moveWindow, zoomWindow } from "./windows.ts";

export interface Pointed extends Hit {
  /** CSS pixels within the drawing. */
  readonly x: number;
  readonly y: number;
}

interface GestureOptions {
  readonly stage: GraphStage | null;
  readonly place: RefObject<HTMLElement | null>;
  readonly extent: NsWindow;
  /** `isStep`: adds an entry to the window history. */
  onWindow(window: NsWindow, isStep: boolean): void;
  onSelect(hit: Hit | null): void;
}

const MIN_DRAG_PX = 4;
const DEBOUNCE_MS = 90;
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
  const reportWindow = useDebouncedWindow(stage, onWindow);
  const afterFrame = useAfterFrame();
  useWheel(stage, place, extent, reportWindow);

  const positionOf = (event: PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top, width: box.width };
  };
  const point = (x: number, y: number) => {
    const hit = stage?.hit(x, y) ?? null;
    stage?.setLit(hit?.span ?? null);
    setPointed(hit && { ...hit, x, y });
  };
  const brushTo = (activeDrag: Drag, x: number): NsWindow => {
    const [a, b] = [stage?.timeAt(activeDrag.x) ?? 0, stage?.timeAt(x) ?? 0];
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
          x: positionOf(event).x,
          kind: isMove ? "move" : "brush",
          from: stage?.window ?? extent,
          isMoved: false,
        };
      },
      onPointerMove(event: PointerEvent) {
        const { x, y, width } = positionOf(event);
        const activeDrag = drag.current;
        if (activeDrag === null) {
          point(x, y);
          return;
        }
        const wasMoved = activeDrag.isMoved;
        activeDrag.isMoved ||= Math.abs(x - activeDrag.x) >= MIN_DRAG_PX;
        if (!activeDrag.isMoved) return;
        if (!wasMoved) {
          stage?.setLit(null);
          setPointed(null);
        }
        if (activeDrag.kind === "brush") stage?.setBrush(brushTo(activeDrag, x));
        else {
          stage?.setWindow(moveWindow(activeDrag.from, (activeDrag.x - x) / Math.max(1, width), extent));
          reportWindow();
        }
      },
      onPointerUp(event: PointerEvent) {
        const activeDrag = drag.current;
        drag.current = null;
        if (activeDrag === null) return;
        const { x, y } = positionOf(event);
        stage?.setBrush(null);
        if (!activeDrag.isMoved) onSelect(stage?.hit(x, y) ?? null);
        else if (activeDrag.kind === "brush") {
          const window = brushTo(activeDrag, x);
          stage?.setWindow(window);
          stage?.flush();
          afterFrame(() => onWindow(window, true));
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

/** Runs a callback after the next frame is painted: rendering the page takes longer than drawing the graph. */
function useAfterFrame(): (callback: () => void) => void {
  const waiting = useRef({ frame: 0, timer: 0 });
  useEffect(
    () => () => {
      cancelAnimationFrame(waiting.current.frame);
      clearTimeout(waiting.current.timer);
    },
    [],
  );
  return (callback) => {
    waiting.current.frame = requestAnimationFrame(() => {
      // In a timer after the frame: work in the callback itself would delay it.
      waiting.current.timer = window.setTimeout(callback);
    });
  };
}

/** Reports the window to the page once it has not moved for a moment. */
function useDebouncedWindow(stage: GraphStage | null, onWindow: GestureOptions["onWindow"]): () => void {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const onWindowRef = useRef(onWindow);
  onWindowRef.current = onWindow;
  useEffect(() => () => clearTimeout(timer.current), []);
  return () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => stage && onWindowRef.current(stage.window, false), DEBOUNCE_MS);
  };
}

/** Registered without React, whose wheel listeners are passive and cannot stop the page from scrolling. */
function useWheel(
  stage: GraphStage | null,
  place: RefObject<HTMLElement | null>,
  extent: NsWindow,
  reportWindow: () => void,
): void {
  const latest = useRef({ extent, reportWindow });
  latest.current = { extent, reportWindow };
  useEffect(() => {
    const element = place.current;
    if (element === null || stage === null) return;
    const onWheel = (event: WheelEvent) => {
      event.preventDefault();
      const box = element.getBoundingClientRect();
      const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1;
      // Some browsers turn Shift and wheel into horizontal scrolling.
      const horizontal = event.shiftKey ? event.deltaX + event.deltaY : event.deltaX;
      const isHorizontal = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      const next = isHorizontal
        ? moveWindow(stage.window, (horizontal * unit) / Math.max(1, box.width), latest.current.extent)
        : zoomWindow(
            stage.window,
            stage.timeAt(event.clientX - box.left),
            Math.exp(event.deltaY * unit * WHEEL_ZOOM),
            latest.current.extent,
          );
      stage.setWindow(next);
      latest.current.reportWindow();
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [stage, place]);
}
