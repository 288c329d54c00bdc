// The visible window of a trace and its history of windows.

import { useRef, useState } from "react";
import { changeParallel, type NsWindow, type ParallelPage } from "../../state/parallel.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { isSameWindow, NO_HISTORY, pushWindow, stepHistory } from "./graph/windows.ts";

export interface Windows {
  readonly canGoBack: boolean;
  readonly canGoForward: boolean;
  /** Null: the typical step. `isStep`: adds an entry to the history. */
  show(window: NsWindow | null, isStep: boolean): void;
  go(direction: "back" | "forward"): void;
}

/** Moves by wheel or keys within this time are one entry of the history. */
const ONE_MOVE_MS = 1500;

export function useWindows(page: ParallelPage): Windows {
  const change = useChangeScreen();
  const [history, setHistory] = useState(NO_HISTORY);
  const movedAt = useRef(Number.NEGATIVE_INFINITY);
  const set = (window: NsWindow | null, step: "push" | "replace") => change(changeParallel({ window }), step);
  return {
    canGoBack: history.past.length > 0,
    canGoForward: history.future.length > 0,
    show(window, isStep) {
      const isSame = window === null ? page.window === null : page.window !== null && isSameWindow(window, page.window);
      if (isSame) return;
      const now = performance.now();
      const isSameMove = !isStep && now - movedAt.current < ONE_MOVE_MS;
      movedAt.current = isStep ? Number.NEGATIVE_INFINITY : now;
      if (!isSameMove) setHistory((previous) => pushWindow(previous, page.window));
      set(window, isStep ? "push" : "replace");
    },
    go(direction) {
      const stepped = stepHistory(history, page.window, direction);
      if (stepped === null) return;
      setHistory(stepped.history);
      set(stepped.window, "replace");
    },
  };
}
