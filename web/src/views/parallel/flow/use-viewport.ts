// The visible part of a flow, its zoom, and scrolling to nodes.

import { type RefObject, type UIEvent, useEffect, useRef, useState } from "react";
import { useSize } from "../../../charts/canvas.tsx";
import type { Box, FlowLayout } from "./layout.ts";

const SCALES = [0.25, 0.35, 0.5, 0.7, 1, 1.2, 1.5] as const;
const DEFAULT_SCALE = 4;
/** Enlarges a flow that is lower than this share of the viewport. */
const ENLARGE_BELOW = 0.66;

export interface Viewport {
  readonly scroller: RefObject<HTMLElement | null>;
  readonly scale: number;
  /** In units of the layout. */
  readonly box: Box;
  /** Vertical scroll offset, in px. */
  readonly top: number;
  onScroll(event: UIEvent): void;
  /** Zooms out or in by one step. */
  rescale(by: -1 | 1): void;
  /** Centers the point; without `y` only horizontally. */
  moveTo(x: number, y?: number): void;
  /** Scrolls to the node if it is not visible. */
  reveal(node: number): void;
}

/** `initialNode`: the node to center first; null: the start of the flow. */
export function useViewport(layout: FlowLayout, initialNode: number | null): Viewport {
  const scroller = useRef<HTMLElement>(null);
  const size = useSize(scroller);
  const [chosen, setStep] = useState<number | null>(null);
  const [corner, setCorner] = useState({ left: 0, top: 0 });
  const step = chosen ?? (layout.size.height < ENLARGE_BELOW * size.height ? DEFAULT_SCALE + 1 : DEFAULT_SCALE);
  const scale = SCALES[step] ?? 1;
  const box = {
    x: corner.left / scale,
    y: corner.top / scale,
    width: size.width / scale,
    height: size.height / scale,
  };
  const moveTo = (x: number, y?: number) =>
    scroller.current?.scrollTo({
      left: x * scale - size.width / 2,
      ...(y === undefined ? {} : { top: y * scale - size.height / 2 }),
    });
  const positionOf = (node: number) => [layout.x[node] ?? 0, layout.y[node] ?? 0] as const;
  useInitialScroll(initialNode, size.width, (node) => moveTo(...positionOf(node)));
  return {
    scroller,
    scale,
    box,
    top: corner.top,
    onScroll: ({ currentTarget }) => setCorner({ left: currentTarget.scrollLeft, top: currentTarget.scrollTop }),
    rescale: (by) => setStep(Math.max(0, Math.min(SCALES.length - 1, step + by))),
    moveTo,
    reveal(node) {
      const [x, y] = positionOf(node);
      const isOutsideX = x < box.x || x + (layout.width[node] ?? 0) > box.x + box.width;
      if (isOutsideX || y < box.y || y > box.y + box.height) moveTo(x, y);
    },
  };
}

/** Once, as soon as the width is known. */
function useInitialScroll(node: number | null, widthPx: number, move: (node: number) => void): void {
  const isDone = useRef(false);
  const go = useRef(move);
  go.current = move;
  useEffect(() => {
    if (isDone.current || node === null || widthPx === 0) return;
    isDone.current = true;
    go.current(node);
  }, [node, widthPx]);
}
