// Which part of a flow is in sight, how large it is drawn, and how a node is brought there.

import { type RefObject, type UIEvent, useEffect, useRef, useState } from "react";
import { useSize } from "../../../charts/canvas.tsx";
import type { Box, FlowLayout } from "./layout.ts";

const SCALES = [0.25, 0.35, 0.5, 0.7, 1, 1.2, 1.5] as const;
const USUAL_SCALE = 4;
/** Where the rows leave room, the drawing is larger. */
const LARGER_BELOW = 0.66;

export interface Sight {
  readonly scroller: RefObject<HTMLElement | null>;
  readonly scale: number;
  /** In the drawing's own units. */
  readonly box: Box;
  /** How far it is scrolled down, in px. */
  readonly top: number;
  onScroll(event: UIEvent): void;
  /** One step smaller or larger. */
  rescale(by: -1 | 1): void;
  /** Their middle; without `y` only sideways. */
  moveTo(x: number, y?: number): void;
  /** Moves only where the node is not in sight. */
  reveal(node: number): void;
}

/** `arrival`: a node to begin with; null: the begin. */
export function useSight(layout: FlowLayout, arrival: number | null): Sight {
  const scroller = useRef<HTMLElement>(null);
  const size = useSize(scroller);
  const [chosen, setStep] = useState<number | null>(null);
  const [corner, setCorner] = useState({ left: 0, top: 0 });
  const step = chosen ?? (layout.size.height < LARGER_BELOW * size.height ? USUAL_SCALE + 1 : USUAL_SCALE);
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
  const placeOf = (node: number) => [layout.x[node] ?? 0, layout.y[node] ?? 0] as const;
  useArrival(arrival, size.width, (node) => moveTo(...placeOf(node)));
  return {
    scroller,
    scale,
    box,
    top: corner.top,
    onScroll: ({ currentTarget }) => setCorner({ left: currentTarget.scrollLeft, top: currentTarget.scrollTop }),
    rescale: (by) => setStep(Math.max(0, Math.min(SCALES.length - 1, step + by))),
    moveTo,
    reveal(node) {
      const [x, y] = placeOf(node);
      const isBeside = x < box.x || x + (layout.width[node] ?? 0) > box.x + box.width;
      if (isBeside || y < box.y || y > box.y + box.height) moveTo(x, y);
    },
  };
}

/** Once, as soon as there is a width to move in. */
function useArrival(node: number | null, widthPx: number, move: (node: number) => void): void {
  const isDone = useRef(false);
  const go = useRef(move);
  go.current = move;
  useEffect(() => {
    if (isDone.current || node === null || widthPx === 0) return;
    isDone.current = true;
    go.current(node);
  }, [node, widthPx]);
}
