// The state of the layout editor: the current arrangement, changes, undo and redo.

import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { NamedView, ViewLibrary } from "../../../data/views.ts";
import type { View } from "../../../layout/grammar.ts";
import { editLayout, openPicture } from "../../../state/changes.ts";
import { type Look, lookOf, withLook } from "../../../state/look.ts";
import type { PictureRef } from "../../../state/picture.ts";
import type { Screen } from "../../../state/screen.ts";
import { useScreenStore } from "../../../state/use-screen.ts";
import { type History, type Moved, NO_HISTORY, record, redo, undo } from "./history.ts";
import { type Arrangement, useArrangement } from "./use-arrangement.ts";

export interface Editor {
  /** Null until it is known what to start with. */
  readonly arrangement: Arrangement | null;
  readonly library: ViewLibrary;
  readonly canUndo: boolean;
  readonly canRedo: boolean;
  edit(view: View): void;
  /** Shows a view as it was saved. */
  open(view: Pick<NamedView, "picture" | "document">): void;
  /** Shows the layout as one that belongs to no saved view. */
  detach(): void;
  undo(): void;
  redo(): void;
}

/** What one step leads from and to. */
interface Placed {
  readonly picture: PictureRef | null;
  readonly layout: View | null;
  readonly look: Look;
}

export function useEditor(screen: Screen): Editor {
  const store = useScreenStore();
  const { arrangement, library } = useArrangement(screen);
  const [history, setHistory] = useState<History<Placed>>(NO_HISTORY);
  // Several changes may come before the next rendering, as when a key repeats.
  const latest = useRef(history);
  const keep = useCallback((next: History<Placed>) => {
    latest.current = next;
    setHistory(next);
  }, []);

  const steps = useMemo(() => {
    const place = () => placedOf(store.read().screen);
    const go = (move: (history: History<Placed>, present: Placed) => Moved<Placed> | null) => {
      const moved = move(latest.current, place());
      if (moved === null) return;
      keep(moved.history);
      store.change((now) => restore(now, moved.present), "replace");
    };
    return {
      note: () => keep(record(latest.current, place())),
      undo: () => go(undo),
      redo: () => go(redo),
    };
  }, [store, keep]);

  return {
    arrangement,
    library,
    canUndo: history.past.length > 0,
    canRedo: history.future.length > 0,
    undo: steps.undo,
    redo: steps.redo,
    edit(view) {
      if (arrangement === null) return;
      steps.note();
      store.change(editLayout(arrangement.picture, view, arrangement.saved?.view ?? null), "replace");
    },
    open({ picture, document }) {
      steps.note();
      store.change(openPicture(picture, document.view, document.look));
    },
    detach() {
      if (arrangement !== null) store.change(editLayout(null, arrangement.view, null), "replace");
    },
  };
}

function placedOf(screen: Screen): Placed {
  return { picture: screen.picture, layout: screen.layout, look: lookOf(screen) };
}

/** Colors go back only with the view they belong to: who changed them after a step means to keep them. */
function restore(screen: Screen, { picture, layout, look }: Placed): Screen {
  const placed = { ...screen, picture, layout };
  return picture === screen.picture ? placed : withLook(placed, look);
}

/** Ctrl+Z and Ctrl+Shift+Z (or ⌘), except where text is written, which has an undo of its own. */
export function useUndoKeys({ undo: back, redo: forth }: Pick<Editor, "undo" | "redo">): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || isWriting(event.target)) return;
      const key = event.key.toLowerCase();
      if (key !== "z" && key !== "y") return;
      event.preventDefault();
      if (key === "y" || event.shiftKey) forth();
      else back();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [back, forth]);
}

function isWriting(target: EventTarget | null): boolean {
  if (target instanceof HTMLTextAreaElement) return true;
  return target instanceof HTMLInputElement && !["radio", "checkbox", "range", "button"].includes(target.type);
}
