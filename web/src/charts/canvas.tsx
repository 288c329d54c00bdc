// What every canvas drawing needs: its size in pixels, device pixel ratio, and the theme's colors.

import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import type { Pen } from "./pen.ts";

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** CSS pixels of an element's inside; 0 until it is laid out. */
export function useSize(place: RefObject<HTMLElement | null>): Size {
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = place.current;
    if (element === null) return;
    const read = () =>
      setSize((last) => {
        const { clientWidth: width, clientHeight: height } = element;
        return last.width === width && last.height === height ? last : { width, height };
      });
    read();
    const observer = new ResizeObserver(read);
    observer.observe(element);
    const stop = onPrint(read);
    return () => {
      stop();
      observer.disconnect();
    };
  }, [place]);
  return size;
}

/**
 * Paper has another width and is white. What is drawn by script follows before it is printed, and again after: observers are
 * too late for the one, and do not notice that anything was different for the other.
 */
function onPrint(renew: () => void): () => void {
  const now = () => flushSync(renew);
  const events = ["beforeprint", "afterprint"] as const;
  for (const event of events) window.addEventListener(event, now);
  return () => {
    for (const event of events) window.removeEventListener(event, now);
  };
}

/** Any CSS color, tokens and `light-dark()` included, as one a canvas understands. */
export type Ink = (css: string) => string;

/** A new function when the theme changes, so that drawings are repeated. */
export function useInk(): Ink {
  const [ink, setInk] = useState<{ readonly of: Ink }>(() => ({ of: createInk() }));
  useEffect(() => {
    const renew = () => setInk({ of: createInk() });
    const scheme = window.matchMedia("(prefers-color-scheme: dark)");
    const observer = new MutationObserver(renew);
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    scheme.addEventListener("change", renew);
    const stop = onPrint(renew);
    return () => {
      stop();
      observer.disconnect();
      scheme.removeEventListener("change", renew);
    };
  }, []);
  return ink.of;
}

/** A custom property is only text; the color it stands for is that of an element that has it. */
export function createInk(): Ink {
  const colors = new Map<string, string>();
  return (css) => {
    let color = colors.get(css);
    if (color === undefined) {
      const probe = document.createElement("span");
      probe.style.color = css;
      document.body.append(probe);
      color = getComputedStyle(probe).color;
      probe.remove();
      colors.set(css, color);
    }
    return color;
  };
}

interface CanvasProps {
  readonly size: Size;
  /** Draws in CSS pixels on a clean sheet, which it need not clear; called again whenever it is another function. */
  readonly draw: (pen: Pen, size: Size) => void;
}

const drawings = new WeakMap<HTMLCanvasElement, CanvasProps>();

/** How a canvas was drawn, to draw it again with another pen; none for canvases that others made. */
export function drawingOf(canvas: HTMLCanvasElement): CanvasProps | undefined {
  return drawings.get(canvas);
}

export function Canvas({ size, draw }: CanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width, height } = size;
  useLayoutEffect(() => {
    const element = canvas.current;
    const pen = element?.getContext("2d");
    if (!element || !pen || width <= 0 || height <= 0) return;
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(pen, { width, height });
    drawings.set(element, { size: { width, height }, draw });
  }, [width, height, draw]);
  return <canvas ref={canvas} style={{ width, height, display: "block" }} />;
}
