// The screen bound to the browser's address: reads it, writes it, follows the back button. The only caller of history.

import type { ScreenChange } from "./changes.ts";
import { type ParsedScreen, parseScreen, type Screen, serializeScreen, type ViewName } from "./screen.ts";

/** `push`: a step the back button undoes; `replace`: one of many small ones, such as typing. */
export type Step = "push" | "replace";

export interface ScreenStore {
  /** The views that can be opened. */
  readonly views: readonly ViewName[];
  read(): ParsedScreen;
  change(change: ScreenChange, step?: Step): void;
  /** Adds to what is said of the link, what only the data could tell. */
  note(notices: readonly string[]): void;
  subscribe(listener: () => void): () => void;
}

export function createScreenStore(page: Window, views: readonly ViewName[]): ScreenStore {
  const listeners = new Set<() => void>();
  const readPage = () => parseScreen(page.location.pathname, page.location.search, views);
  let current = readPage();
  const tell = (next: ParsedScreen) => {
    current = next;
    for (const listener of listeners) listener();
  };
  const follow = () => tell(readPage());

  return {
    views,
    read: () => current,
    change(change, step = "push") {
      const screen: Screen = change(current.screen);
      const link = serializeScreen(screen);
      // Two large selections may begin alike, and a link has room only for the beginning.
      const isSameSelection = screen.selection?.key === current.screen.selection?.key;
      if (isSameSelection && link === serializeScreen(current.screen)) return;
      if (step === "push") page.history.pushState(null, "", link);
      else page.history.replaceState(null, "", link);
      tell({ screen, notices: current.notices });
    },
    note(notices) {
      const added = notices.filter((notice) => !current.notices.includes(notice));
      if (added.length > 0) tell({ screen: current.screen, notices: [...current.notices, ...added] });
    },
    subscribe(listener) {
      if (listeners.size === 0) page.addEventListener("popstate", follow);
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) page.removeEventListener("popstate", follow);
      };
    },
  };
}
