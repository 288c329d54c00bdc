// A graph's stage bound to its canvases: made once, told of sizes, put away with them.

import { type RefObject, useEffect, useLayoutEffect, useState } from "react";
import type { Size } from "../../../charts/canvas.tsx";
import { GraphStage } from "./stage.ts";

export interface StageCanvases {
  readonly back: RefObject<HTMLCanvasElement | null>;
  readonly spans: RefObject<HTMLCanvasElement | null>;
  readonly front: RefObject<HTMLCanvasElement | null>;
  readonly brush: RefObject<HTMLElement | null>;
}

/** Null until there are canvases, and where the browser cannot draw: `failure` says why. */
export function useStage({ back, spans, front, brush }: StageCanvases, size: Size) {
  const [stage, setStage] = useState<GraphStage | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    if (!back.current || !spans.current || !front.current || !brush.current) return;
    try {
      const made = new GraphStage({
        back: back.current,
        spans: spans.current,
        front: front.current,
        brush: brush.current,
      });
      setStage(made);
      return () => {
        made.dispose();
        setStage(null);
      };
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
      return;
    }
  }, [back, spans, front, brush]);
  useLayoutEffect(() => {
    if (size.width > 0 && size.height > 0) stage?.setSize(size.width, size.height, window.devicePixelRatio || 1);
  }, [stage, size.width, size.height]);
  return { stage, failure };
}
