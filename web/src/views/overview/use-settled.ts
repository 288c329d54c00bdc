// Whether the first picture is on the screen. Everything around it is loaded afterwards.

import { startTransition, useCallback, useEffect, useState } from "react";

/** A picture that does not come, as where nothing is drawn in the background, must not keep the rest away. */
const PATIENCE_MS = 2000;

/** Where the controls stand above the picture (as view-layout.module.css has it) it would move when they come. */
const NARROW = "(max-width: 799px)";

/** `isWaiting`: there may be a picture to wait for. Returns whether it is there, and what to call when it is. */
export function useSettled(isWaiting: boolean): readonly [boolean, () => void] {
  const [isDrawn, setDrawn] = useState(() => window.matchMedia(NARROW).matches);
  const settle = useCallback(() => {
    // A frame to draw in and one to show it.
    requestAnimationFrame(() => requestAnimationFrame(() => startTransition(() => setDrawn(true))));
  }, []);
  useEffect(() => {
    if (isDrawn) return;
    const timer = setTimeout(() => setDrawn(true), isWaiting ? PATIENCE_MS : 0);
    return () => clearTimeout(timer);
  }, [isDrawn, isWaiting]);
  return [isDrawn || !isWaiting, settle];
}
