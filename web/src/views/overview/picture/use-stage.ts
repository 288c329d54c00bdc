// Connects the stage with React: creates it on its canvases, passes changes, and follows the size of its element.

import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Size } from "./camera.ts";
import type { Outlined } from "./outline-painter.ts";
import { Stage, type StageElements } from "./stage.ts";
import { describeUnit } from "./unit-words.ts";
import type { PlacedUnits } from "./use-layout.ts";
import type { PictureModel } from "./use-picture.ts";

export interface StageRefs {
  readonly place: RefObject<HTMLDivElement | null>;
  readonly groups: RefObject<HTMLCanvasElement | null>;
  readonly squares: RefObject<HTMLCanvasElement | null>;
  readonly outlines: RefObject<HTMLCanvasElement | null>;
  readonly hovered: RefObject<SVGRectElement | null>;
  readonly focused: RefObject<SVGRectElement | null>;
  readonly sketch: RefObject<SVGPathElement | null>;
}

export function useStageRefs(): StageRefs {
  const place = useRef<HTMLDivElement>(null);
  const groups = useRef<HTMLCanvasElement>(null);
  const squares = useRef<HTMLCanvasElement>(null);
  const outlines = useRef<HTMLCanvasElement>(null);
  const hovered = useRef<SVGRectElement>(null);
  const focused = useRef<SVGRectElement>(null);
  const sketch = useRef<SVGPathElement>(null);
  return useRef({ place, groups, squares, outlines, hovered, focused, sketch }).current;
}

/** Null until it is there; `"failed"` where the browser cannot draw. */
export function useStage(refs: StageRefs): Stage | "failed" | null {
  const [stage, setStage] = useState<Stage | "failed" | null>(null);
  const [generation, setGeneration] = useState(0);
  useEffect(() => {
    const squares = refs.squares.current;
    if (squares === null) return;
    // When a driver restarts or a laptop sleeps, GPU resources are lost and must be recreated.
    const allow = (event: Event) => event.preventDefault();
    const renew = () => setGeneration((last) => last + 1);
    squares.addEventListener("webglcontextlost", allow);
    squares.addEventListener("webglcontextrestored", renew);
    return () => {
      squares.removeEventListener("webglcontextlost", allow);
      squares.removeEventListener("webglcontextrestored", renew);
    };
  }, [refs]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a restored context needs a new stage
  useEffect(() => {
    const elements = readElements(refs);
    if (elements === null) return;
    try {
      const created = new Stage(elements);
      setStage(created);
      return () => created.dispose();
    } catch {
      setStage("failed");
      return;
    }
  }, [refs, generation]);
  return stage;
}

function readElements(refs: StageRefs): StageElements | null {
  const groups = refs.groups.current;
  const squares = refs.squares.current;
  const outlines = refs.outlines.current;
  const hovered = refs.hovered.current;
  const focused = refs.focused.current;
  const sketch = refs.sketch.current;
  if (!groups || !squares || !outlines || !hovered || !focused || !sketch) return null;
  return { groups, squares, outlines, hovered, focused, sketch };
}

/** A window being drawn larger changes its size many times a second; a layout waits until it has come to rest. */
const REST_MS = 120;

/**
 * The size to lay out for; null until known. It stays the same when the details panel opens or closes: nothing may move
 * under the pointer.
 */
export function useStageSize(
  stage: Stage | null,
  place: RefObject<HTMLDivElement | null>,
  hasDetails: boolean,
): Size | null {
  const [size, setSize] = useState<Size | null>(null);
  const details = useRef(hasDetails);
  useLayoutEffect(() => {
    details.current = hasDetails;
  }, [hasDetails]);
  // Units are laid out while the stage is being made.
  useLayoutEffect(() => {
    const { clientWidth: width = 0, clientHeight: height = 0 } = place.current ?? {};
    if (width > 0 && height > 0) setSize({ width, height });
  }, [place]);
  useEffect(() => {
    const element = place.current;
    if (stage === null || element === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let hadDetails = details.current;
    let isFirst = true;
    const observer = new ResizeObserver(() => {
      const next = { width: element.clientWidth, height: element.clientHeight };
      if (next.width === 0 || next.height === 0) return;
      const isForDetails = !isFirst && details.current !== hadDetails;
      hadDetails = details.current;
      isFirst = false;
      stage.setSize(next, window.devicePixelRatio, isForDetails);
      if (isForDetails) return;
      clearTimeout(timer);
      setSize((previous) => previous ?? next);
      timer = setTimeout(() => setSize((previous) => (isSameSize(previous, next) ? previous : next)), REST_MS);
    });
    observer.observe(element);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
    };
  }, [stage, place]);
  return size;
}

function isSameSize(a: Size | null, b: Size): boolean {
  return a !== null && a.width === b.width && a.height === b.height;
}

export function useStageData(stage: Stage | null, model: PictureModel, placed: PlacedUnits | null): void {
  useEffect(() => stage?.setTokens(model.tokens), [stage, model.tokens]);
  useEffect(() => {
    if (stage === null || placed === null) return;
    stage.setLayout(placed.layout, placed.units.snapshot.names("unit"));
  }, [stage, placed]);
  const isPlaced = placed !== null && placed.units.snapshot === model.units.snapshot;
  const { units, color, marks } = model;
  useEffect(() => {
    // Rows of a newer snapshot are other units: their colors wait for their places.
    if (!isPlaced) return;
    stage?.setMarks(marks, (row) => {
      const { title, value } = describeUnit(units, row, color);
      return [title, value];
    });
  }, [stage, isPlaced, units, color, marks]);
}

export function useStageOutlines(stage: Stage | null, outlined: Outlined): void {
  useEffect(() => stage?.setOutlined(outlined), [stage, outlined]);
}
