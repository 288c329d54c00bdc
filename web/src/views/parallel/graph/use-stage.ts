// Binds a graph's stage to its canvases: created once, resized and disposed with them.

import { type RefObject, useEffect, useLayoutEffect, useState } from "react";
import type { Size } from "../../../charts/canvas.tsx";
import { GraphStage } from "./stage.ts";

export interface StageCanvases {
  readonly back: RefObject<HTMLCanvasElement | null>;
  readonly spans: RefObject<HTMLCanvasElement | null>;
  readonly front: RefObject<HTMLCanvasElement | null>;
  readonly brush: RefObject<HTMLElement | null>;
}

/** `stage` is null until the canvases are mounted, and if the browser cannot draw: then `failure` says why. */
export function useStage({ back, spans, front, brush }: StageCanvases, size: Size) {
  const [stage, setStage] = useState<GraphStage | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    if (!back.current || !spans.current || !front.current || !brush.current) return;
    try {
      const created = new GraphStage({
        back: back.current,
        spans: spans.current,
        front: front.current,
        brush: brush.current,
      });
      setStage(created);
      return () => {
        created.dispose();
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
  useEffect(() => {
    if (stage === null) return;
    // Printing does not wait for the next frame.
    const draw = () => stage.drawNow();
    window.addEventListener("beforeprint", draw);
    return () => window.removeEventListener("beforeprint", draw);
  }, [stage]);
  return { stage, failure };
}
