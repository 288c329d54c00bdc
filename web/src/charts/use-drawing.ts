// Pointer handling of charts: hover and range selection with the mouse. Positions are 0–1 from the left.

import { type PointerEvent, useRef } from "react";

interface Drawing {
  /** The pointer is there; null: it has left. */
  onPoint(at: number | null): void;
  /** A range is being drawn, from where the pointer went down. */
  onDraw(from: number, to: number): void;
  /** It was let go. `isDrag`: further than a click. */
  onDone(from: number, to: number, isDrag: boolean): void;
  /** It was broken off. */
  onCancel(): void;
}

const LEAST_DRAG_PX = 4;

/** Handlers for the element that is drawn in. */
export function useDrawing({ onPoint, onDraw, onDone, onCancel }: Drawing) {
  const start = useRef<{ readonly at: number; readonly x: number } | null>(null);
  const isDrag = (event: PointerEvent) =>
    start.current !== null && Math.abs(event.clientX - start.current.x) >= LEAST_DRAG_PX;
  return {
    onPointerDown(event: PointerEvent<HTMLElement>) {
      if (event.button !== 0) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      start.current = { at: ratioAt(event), x: event.clientX };
    },
    onPointerMove(event: PointerEvent<HTMLElement>) {
      const at = ratioAt(event);
      onPoint(at);
      if (start.current && isDrag(event)) onDraw(start.current.at, at);
    },
    onPointerUp(event: PointerEvent<HTMLElement>) {
      const from = start.current;
      const wasDrag = isDrag(event);
      start.current = null;
      if (from) onDone(from.at, ratioAt(event), wasDrag);
    },
    onPointerCancel() {
      start.current = null;
      onCancel();
    },
    onPointerLeave: () => onPoint(null),
  };
}

/** 0–1 from the left of the element that listens. */
function ratioAt(event: PointerEvent<HTMLElement>): number {
  const { left, width } = event.currentTarget.getBoundingClientRect();
  return Math.min(1, Math.max(0, (event.clientX - left) / Math.max(1, width)));
}
