// Which time of a trace is shown, the ways back, and how the page is told.

import { useRef, useState } from "react";
import { changeParallel, type NsWindow, type ParallelPage } from "../../state/parallel.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { goOn, isSameWindow, NO_HISTORY, stepHistory } from "./graph/windows.ts";

export interface Windows {
  readonly canGoBack: boolean;
  readonly canGoForward: boolean;
  /** Null: the typical step. `isStep`: one to come back to. */
  show(window: NsWindow | null, isStep: boolean): void;
  go(way: "back" | "forward"): void;
}

/** Moves by wheel and keys that follow one another so soon are one step back. */
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
      const goesOn = !isStep && now - movedAt.current < ONE_MOVE_MS;
      movedAt.current = isStep ? Number.NEGATIVE_INFINITY : now;
      if (!goesOn) setHistory((held) => goOn(held, page.window));
      set(window, isStep ? "push" : "replace");
    },
    go(way) {
      const stepped = stepHistory(history, page.window, way);
      if (stepped === null) return;
      setHistory(stepped.history);
      set(stepped.window, "replace");
    },
  };
}
