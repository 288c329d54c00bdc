// Binds the screen to the browser's address: reads it, writes it, follows the back button. The only caller of the
// history API. Or a screen without an address, for reports.

import type { ScreenChange } from "./changes.ts";
import {
  INITIAL_SCREEN,
  type ParsedScreen,
  parseScreen,
  type Screen,
  serializeScreen,
  type ViewName,
} from "./screen.ts";

/** `push`: a step the back button undoes; `replace`: one of many small ones, such as typing. */
export type Step = "push" | "replace";

export interface ScreenStore {
  /** The views that can be opened. */
  readonly views: readonly ViewName[];
  read(): ParsedScreen;
  change(change: ScreenChange, step?: Step): void;
  /** Adds notices about the link that are known only from the data. */
  note(notices: readonly string[]): void;
  subscribe(listener: () => void): () => void;
}

export function createScreenStore(page: Window, views: readonly ViewName[]): ScreenStore {
  const listeners = new Set<() => void>();
  const readPage = () => parseScreen(page.location.pathname, page.location.search, views);
  let current = readPage();
  const update = (next: ParsedScreen) => {
    current = next;
    for (const listener of listeners) listener();
  };
  const follow = () => update(readPage());

  return {
    views,
    read: () => current,
    change(change, step = "push") {
      const screen: Screen = change(current.screen);
      const link = serializeScreen(screen);
      // Two large selections may have the same link, which holds only their start.
      const isSameSelection = screen.selection?.key === current.screen.selection?.key;
      if (isSameSelection && link === serializeScreen(current.screen)) return;
      if (step === "push") page.history.pushState(null, "", link);
      else page.history.replaceState(null, "", link);
      update({ screen, notices: current.notices });
    },
    note(notices) {
      const added = notices.filter((notice) => !current.notices.includes(notice));
      if (added.length > 0) update({ screen: current.screen, notices: [...current.notices, ...added] });
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

export function createMemoryScreenStore(): ScreenStore {
  const listeners = new Set<() => void>();
  let current: ParsedScreen = { screen: INITIAL_SCREEN, notices: [] };
  return {
    views: [],
    read: () => current,
    change(change) {
      current = { ...current, screen: change(current.screen) };
      for (const listener of listeners) listener();
    },
    note() {},
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
