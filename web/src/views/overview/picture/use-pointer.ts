// Pointer input of the picture: hover, drag to pan or select, click, wheel, pinch.

import { type PointerEvent, type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { boxCorners, type Point } from "./lasso.ts";
import { isSamePointed, NOTHING_POINTED, type Pointed } from "./pointed.ts";
import type { Stage } from "./stage.ts";

/** What dragging does without a key. */
export const POINTER_MODES = ["pan", "box", "lasso"] as const;
export type PointerMode = (typeof POINTER_MODES)[number];

/** Who moves less than this means to click, in pixels. */
const CLICK_PX = 4;
/** Points of a loop are at least so far apart. */
const LOOP_STEP_PX = 3;
/** A second click so soon is half of a double click. */
const DOUBLE_MS = 400;
const WHEEL_SPEED = 0.0016;
/** A pinch on a touchpad comes as a wheel with small steps. */
const PINCH_SPEED = 0.01;
const LINE_PX = 16;

interface Drag {
  readonly kind: PointerMode;
  readonly isAdding: boolean;
  /** In pixels of the picture; a box has its first and its last. */
  readonly points: Point[];
  isMoving: boolean;
}

export interface PointerOptions {
  readonly stage: Stage | null;
  readonly place: RefObject<HTMLElement | null>;
  readonly mode: PointerMode;
  /** `isAdding`: to or from what is selected already. */
  onChoose(pointed: Pointed, isAdding: boolean): void;
  /** Corners in the units of the layout. */
  onLoop(corners: readonly Point[], isAdding: boolean): void;
}

interface Pointer {
  readonly pointed: Pointed;
  /** What is being dragged; null: nothing. */
  readonly dragging: PointerMode | null;
  /** Points at nothing until it moves again. */
  clear(): void;
  /** Gives up what is being drawn; false where nothing is. */
  cancel(): boolean;
  readonly handlers: {
    onPointerDown(event: PointerEvent<HTMLElement>): void;
    onPointerMove(event: PointerEvent<HTMLElement>): void;
    onPointerUp(event: PointerEvent<HTMLElement>): void;
    onPointerCancel(event: PointerEvent<HTMLElement>): void;
    onPointerLeave(): void;
  };
}

export function usePointer({ stage, place, mode, onChoose, onLoop }: PointerOptions): Pointer {
  const [pointed, setPointed] = useState(NOTHING_POINTED);
  const [dragging, setDragging] = useState<PointerMode | null>(null);
  const drag = useRef<Drag | null>(null);
  const fingers = useRef(new Map<number, Point>());
  const clickedAt = useRef(Number.NEGATIVE_INFINITY);
  const clear = useCallback(() => setPointed(NOTHING_POINTED), []);
  useWheel(stage, place, clear);

  const point = (next: Pointed) => {
    setPointed((previous) => (isSamePointed(previous, next) ? previous : next));
  };
  const drop = () => {
    drag.current = null;
    stage?.setSketch([]);
    setDragging(null);
  };
  const move = (moved: Drag, at: Point) => {
    const [x, y] = moved.points.at(-1) ?? at;
    if (moved.kind === "pan") {
      stage?.pan(at[0] - x, at[1] - y);
      moved.points.splice(0, moved.points.length, at);
      return;
    }
    if (moved.kind === "box") moved.points.splice(1, 1, at);
    else if (Math.hypot(at[0] - x, at[1] - y) >= LOOP_STEP_PX) moved.points.push(at);
    stage?.setSketch(cornersOf(moved));
  };
  const finish = (moved: Drag) => {
    if (stage === null || moved.kind === "pan") return;
    const corners = cornersOf(moved).map(([x, y]) => stage.toLayout(x, y));
    if (corners.length > 2) onLoop(corners, moved.isAdding);
  };
  return {
    pointed,
    dragging,
    clear,
    cancel() {
      const isDrawing = drag.current?.isMoving === true && drag.current.kind !== "pan";
      if (isDrawing) drop();
      return isDrawing;
    },
    handlers: {
      onPointerDown(event) {
        if (event.button !== 0) return;
        const at = pointOf(event);
        fingers.current.set(event.pointerId, at);
        const kind = event.shiftKey ? "box" : event.altKey ? "lasso" : mode;
        if (fingers.current.size > 1) drop();
        else drag.current = { kind, isAdding: event.ctrlKey || event.metaKey, points: [at], isMoving: false };
      },
      onPointerMove(event) {
        const at = pointOf(event);
        if (fingers.current.size === 2 && fingers.current.has(event.pointerId)) {
          if (stage) pinch(stage, fingers.current, event.pointerId, at);
          return;
        }
        fingers.current.set(event.pointerId, at);
        const moved = drag.current;
        if (moved === null) {
          fingers.current.delete(event.pointerId);
          if (stage) point(stage.point(...at));
          return;
        }
        if (!moved.isMoving) {
          const [x, y] = moved.points[0] ?? at;
          if (Math.hypot(at[0] - x, at[1] - y) < CLICK_PX) return;
          moved.isMoving = true;
          event.currentTarget.setPointerCapture(event.pointerId);
          setDragging(moved.kind);
          clear();
        }
        move(moved, at);
      },
      onPointerUp(event) {
        fingers.current.delete(event.pointerId);
        const moved = drag.current;
        drop();
        if (moved === null || stage === null) return;
        if (moved.isMoving) {
          finish(moved);
          return;
        }
        const isSecond = event.timeStamp - clickedAt.current < DOUBLE_MS;
        clickedAt.current = event.timeStamp;
        if (!isSecond) onChoose(stage.point(...pointOf(event)), moved.isAdding || event.shiftKey);
      },
      onPointerCancel(event) {
        fingers.current.delete(event.pointerId);
        drop();
      },
      onPointerLeave() {
        if (drag.current?.isMoving) return;
        drag.current = null;
        fingers.current.clear();
        clear();
      },
    },
  };
}

function cornersOf({ kind, points }: Drag): readonly Point[] {
  const [first, last] = [points[0], points.at(-1)];
  return kind === "box" && first && last ? boxCorners(first, last) : points;
}

export function pointOf(event: { currentTarget: Element; clientX: number; clientY: number }): Point {
  const box = event.currentTarget.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

/** What is between two fingers stays between them. */
function pinch(stage: Stage, fingers: Map<number, Point>, id: number, at: Point): void {
  const before = fingers.get(id) ?? at;
  const [otherX, otherY] = [...fingers].find(([other]) => other !== id)?.[1] ?? at;
  const distanceBefore = Math.hypot(before[0] - otherX, before[1] - otherY);
  const is = Math.hypot(at[0] - otherX, at[1] - otherY);
  stage.pan((at[0] - before[0]) / 2, (at[1] - before[1]) / 2);
  if (distanceBefore > 0 && is > 0) stage.zoom(is / distanceBefore, (at[0] + otherX) / 2, (at[1] + otherY) / 2);
  fingers.set(id, at);
}

/** React listens to wheels passively: the page would scroll, too. */
function useWheel(stage: Stage | null, place: RefObject<HTMLElement | null>, onZoom: () => void): void {
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
      onZoom();
    };
    element.addEventListener("wheel", zoom, { passive: false });
    return () => element.removeEventListener("wheel", zoom);
  }, [stage, place, onZoom]);
}
