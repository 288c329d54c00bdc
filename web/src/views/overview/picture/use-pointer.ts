// The pointer on the picture: what it is over, dragging, clicking, the wheel.

import { type PointerEvent, type RefObject, useCallback, useEffect, useRef, useState } from "react";
import type { Stage } from "./stage.ts";

/** Who moves less than this means to click, in pixels. */
const CLICK_PX = 4;
const WHEEL_SPEED = 0.0016;
/** A pinch on a touchpad comes as a wheel with small steps. */
const PINCH_SPEED = 0.01;
const LINE_PX = 16;

interface Drag {
  readonly startX: number;
  readonly startY: number;
  x: number;
  y: number;
  isMoving: boolean;
}

interface Pointer {
  /** The row under the pointer. */
  readonly row: number | null;
  readonly isDragging: boolean;
  /** Points at nothing until it moves again. */
  clear(): void;
  readonly handlers: {
    onPointerDown(event: PointerEvent<HTMLElement>): void;
    onPointerMove(event: PointerEvent<HTMLElement>): void;
    onPointerUp(event: PointerEvent<HTMLElement>): void;
    onPointerLeave(): void;
  };
}

export function usePointer(
  stage: Stage | null,
  place: RefObject<HTMLElement | null>,
  onChoose: (row: number | null) => void,
): Pointer {
  const [row, setRow] = useState<number | null>(null);
  const [isDragging, setDragging] = useState(false);
  const drag = useRef<Drag | null>(null);
  useWheel(stage, place, setRow);
  const clear = useCallback(() => setRow(null), []);
  const pick = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    return stage?.pick(event.clientX - box.left, event.clientY - box.top) ?? null;
  };
  return {
    row,
    isDragging,
    clear,
    handlers: {
      onPointerDown(event) {
        if (event.button !== 0) return;
        const { clientX: x, clientY: y } = event;
        drag.current = { startX: x, startY: y, x, y, isMoving: false };
      },
      onPointerMove(event) {
        const moved = drag.current;
        if (moved === null) {
          setRow(pick(event));
          return;
        }
        if (!moved.isMoving) {
          if (Math.hypot(event.clientX - moved.startX, event.clientY - moved.startY) < CLICK_PX) return;
          moved.isMoving = true;
          event.currentTarget.setPointerCapture(event.pointerId);
          setDragging(true);
          setRow(null);
        }
        stage?.pan(event.clientX - moved.x, event.clientY - moved.y);
        moved.x = event.clientX;
        moved.y = event.clientY;
      },
      onPointerUp(event) {
        const moved = drag.current;
        drag.current = null;
        setDragging(false);
        if (moved !== null && !moved.isMoving) onChoose(pick(event));
      },
      onPointerLeave() {
        if (drag.current?.isMoving) return;
        drag.current = null;
        setRow(null);
      },
    },
  };
}

/** React listens to wheels passively: the page would scroll, too. */
function useWheel(
  stage: Stage | null,
  place: RefObject<HTMLElement | null>,
  onRow: (row: number | null) => void,
): void {
  useEffect(() => {
    const element = place.current;
    if (stage === null || element === null) return;
    const zoom = (event: WheelEvent) => {
      event.preventDefault();
      const box = element.getBoundingClientRect();
      const x = event.clientX - box.left;
      const y = event.clientY - box.top;
      const delta = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1);
      stage.zoom(Math.exp(-delta * (event.ctrlKey ? PINCH_SPEED : WHEEL_SPEED)), x, y);
      onRow(null);
    };
    element.addEventListener("wheel", zoom, { passive: false });
    return () => element.removeEventListener("wheel", zoom);
  }, [stage, place, onRow]);
}
