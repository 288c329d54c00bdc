// The visible part of a flow, its zoom, and scrolling to nodes.

import { type RefObject, type UIEvent, useEffect, useRef, useState } from "react";
import { useSize } from "../../../charts/canvas.tsx";
import { type Box, type FlowLayout, NODE_HEIGHT } from "./layout.ts";

/** Of one step of the zoom. */
const ZOOM = 1.4;
const [MIN_SCALE, MAX_SCALE] = [0.04, 1.5];
/** A flow that fits is not enlarged more than this. */
const MAX_FIT = 1.2;
/** Of the free height, above the flow: the middle of a picture is seen above that of its frame. */
const PAD_SHARE = 0.4;
/** Below this scale names are too small to read: nodes are drawn in the color of what they are. */
export const FAR_SCALE = 0.5;
/** Nodes without names are stretched to at most this height. */
const FAR_NODE_PX = 20;
/** Of the height, what a stretched flow takes. */
const STRETCH_SHARE = 0.92;
/** The first scale at a node that was asked for: its name is readable. */
const READABLE_SCALE = 0.85;

export interface Viewport {
  readonly scroller: RefObject<HTMLElement | null>;
  readonly scale: number;
  /** Vertical scale: a long flow that is drawn small is stretched to the free height. */
  readonly scaleY: number;
  /** In units of the layout. */
  readonly box: Box;
  /** Vertical scroll offset, in px. */
  readonly top: number;
  /** Above a flow that is lower than the viewport, in px. */
  readonly pad: number;
  onScroll(event: UIEvent): void;
  /** Whether the whole flow is visible at once, as it is at first. */
  readonly isFitted: boolean;
  /** Zooms out or in by one step. */
  rescale(by: -1 | 1): void;
  /** Shows the whole flow. */
  fit(): void;
  /** Centers the point; without `y` only horizontally. */
  moveTo(x: number, y?: number): void;
  /** Scrolls to the node if it is not visible. */
  reveal(node: number): void;
}

/** `initialNode`: the node to center first; null: the start of the flow. */
export function useViewport(layout: FlowLayout, initialNode: number | null): Viewport {
  const scroller = useRef<HTMLElement>(null);
  const size = useSize(scroller);
  // Null: the whole flow.
  const [chosen, setChosen] = useState<number | null>(initialNode === null ? null : READABLE_SCALE);
  const [corner, setCorner] = useState({ left: 0, top: 0 });
  const fitted = fitScale(layout, size);
  const scale = chosen ?? fitted;
  const scaleY = stretchScale(layout, size, scale);
  const box = {
    x: corner.left / scale,
    y: corner.top / scaleY,
    width: size.width / scale,
    height: size.height / scaleY,
  };
  const moveTo = (x: number, y?: number) =>
    scroller.current?.scrollTo({
      left: x * scale - size.width / 2,
      ...(y === undefined ? {} : { top: y * scaleY - size.height / 2 }),
    });
  const positionOf = (node: number) => [layout.x[node] ?? 0, layout.y[node] ?? 0] as const;
  useInitialScroll(initialNode, size.width, (node) => moveTo(...positionOf(node)));
  return {
    scroller,
    scale,
    scaleY,
    box,
    top: corner.top,
    pad: Math.max(0, size.height - layout.size.height * scaleY) * PAD_SHARE,
    onScroll: ({ currentTarget }) => setCorner({ left: currentTarget.scrollLeft, top: currentTarget.scrollTop }),
    isFitted: chosen === null,
    rescale: (by) => setChosen(Math.max(MIN_SCALE, Math.min(MAX_SCALE, scale * ZOOM ** by))),
    fit: () => setChosen(null),
    moveTo,
    reveal(node) {
      const [x, y] = positionOf(node);
      const isOutsideX = x < box.x || x + (layout.width[node] ?? 0) > box.x + box.width;
      if (isOutsideX || y < box.y || y > box.y + box.height) moveTo(x, y);
    },
  };
}

/** The scale at which the whole flow is visible. */
export function fitScale(layout: FlowLayout, size: { readonly width: number; readonly height: number }): number {
  if (size.width === 0) return 1;
  const scale = Math.min(size.width / layout.size.width, size.height / layout.size.height);
  return Math.max(MIN_SCALE, Math.min(MAX_FIT, scale));
}

/** The vertical scale at a horizontal one: larger only where names are not drawn anyway and the height is free. */
export function stretchScale(layout: FlowLayout, size: { readonly height: number }, scale: number): number {
  if (scale >= FAR_SCALE) return scale;
  const free = (STRETCH_SHARE * size.height) / layout.size.height;
  return Math.max(scale, Math.min(free, FAR_NODE_PX / NODE_HEIGHT));
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
