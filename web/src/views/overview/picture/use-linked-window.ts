// Synchronizes camera and link: when the camera rests, its window is written into the link; when the link changes
// (opened, or back button), the camera moves there.

import { useEffect, useRef } from "react";
import { showWindow } from "../../../state/changes.ts";
import { useChangeScreen, useScreen } from "../../../state/use-screen.ts";
import { serializeWindow } from "../../../state/window.ts";
import { type Size, windowOf } from "./camera.ts";
import { describeWindow, findWindow } from "./linked-window.ts";
import type { Stage } from "./stage.ts";
import type { PlacedUnits } from "./use-layout.ts";

/** So long after its last move the camera is where it was meant to go. */
const REST_MS = 300;

/** The space to lay out for: that of the link while it shows a part of the picture, else that of the page. */
export function useLinkedSpace(size: Size | null): Size | null {
  const space = useRef<Size | null>(null);
  const { window } = useScreen();
  if (window === null) space.current = null;
  else if (!isSameSpace(space.current, window.space)) space.current = window.space;
  return size === null ? null : (space.current ?? size);
}

function isSameSpace(a: Size | null, b: Size): boolean {
  return a !== null && a.width === b.width && a.height === b.height;
}

export function useLinkedWindow(stage: Stage | null, placed: PlacedUnits | null, space: Size | null): void {
  const { window } = useScreen();
  const change = useChangeScreen();
  /** What the camera shows, as the link has it. */
  const shown = useRef<string | null>(null);
  const latest = useRef({ placed, space });
  latest.current = { placed, space };
  const isReady = stage !== null && placed !== null;
  useEffect(() => {
    const { layout } = latest.current.placed ?? {};
    const text = window && serializeWindow(window);
    if (!isReady || layout === undefined || text === shown.current) return;
    shown.current = text;
    if (window === null) stage.fit();
    else stage.showBox(findWindow(layout, window));
  }, [stage, isReady, window]);
  useEffect(() => {
    if (stage === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const save = () => {
      const now = latest.current;
      if (now.placed === null || now.space === null) return;
      const visible = stage.isFitted ? null : windowOf(stage.camera, stage.viewport);
      const next = visible && describeWindow(now.placed.layout, visible, now.space);
      const text = next && serializeWindow(next);
      if (text === shown.current) return;
      shown.current = text;
      change(showWindow(next), "replace");
    };
    const stop = stage.watch(() => {
      clearTimeout(timer);
      timer = setTimeout(save, REST_MS);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [stage, change]);
}
