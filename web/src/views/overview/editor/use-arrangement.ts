// Which arrangement the picture has: the one the link names or the start view, with the edits the link holds.

import { useEffect, useLayoutEffect, useMemo } from "react";
import { type NamedView, useViewLibrary, type ViewLibrary } from "../../../data/views.ts";
import { BUILTIN_VIEWS } from "../../../layout/builtin-views.ts";
import type { View } from "../../../layout/grammar.ts";
import { openPicture } from "../../../state/changes.ts";
import { isSameLook, type Look, lookOf, PLAIN_LOOK } from "../../../state/look.ts";
import { DEFAULT_PICTURE, isSameView, PICTURE_NAMES, type PictureRef } from "../../../state/picture.ts";
import type { Screen } from "../../../state/screen.ts";
import { useScreenStore } from "../../../state/use-screen.ts";
import type { ViewDocument } from "../../../state/view-document.ts";

export interface Arrangement {
  /** Null: a layout out of a link that belongs to no view known here. */
  readonly picture: PictureRef | null;
  readonly title: string;
  /** What is drawn. */
  readonly view: View;
  /** As it was saved; null where it never was. */
  readonly saved: ViewDocument | null;
  /** Whether what is on the screen differs from what was saved. */
  readonly isEdited: boolean;
}

export interface Arranged {
  /** Null until it is known what to start with. */
  readonly arrangement: Arrangement | null;
  readonly library: ViewLibrary;
}

export const BUILTIN_LIST: readonly NamedView[] = BUILTIN_VIEWS.flatMap(({ key, title, view }) => {
  const picture = PICTURE_NAMES.find((name) => name === key);
  return picture ? [{ picture, name: key, document: { title, view, look: PLAIN_LOOK }, leftOut: [] }] : [];
});

const DEFAULT_VIEW = findDefault();

function findDefault(): NamedView {
  const found = BUILTIN_LIST.find(({ picture }) => picture === DEFAULT_PICTURE);
  if (found === undefined) throw new Error(`There is no arrangement named ${DEFAULT_PICTURE}`);
  return found;
}

export function useArrangement(screen: Screen): Arranged {
  const library = useViewLibrary();
  const store = useScreenStore();
  const start = findStart(screen, library);
  const isElsewhere = start !== null && start.picture !== DEFAULT_PICTURE;
  // Before the page is painted, so that nothing is drawn that nobody asked for.
  useLayoutEffect(() => {
    if (start === null || !isElsewhere) return;
    store.change(openPicture(start.picture, start.document.view, start.document.look), "replace");
  }, [start, isElsewhere, store]);

  const named = screen.picture === null ? null : findView(library, screen.picture);
  const isLost = screen.picture !== null && named === null && screen.layout === null && library.isSettled;
  const lost = isLost ? `There is no view ${screen.picture} here; this is ${DEFAULT_VIEW.document.title}.` : null;
  const faults = named?.leftOut ?? NO_FAULTS;
  useEffect(() => store.note(lost === null ? faults : [lost]), [store, lost, faults]);

  const { layout } = screen;
  const isKnown = library.isSettled || start !== null;
  const shown = named ?? (layout === null && !isElsewhere && isKnown ? DEFAULT_VIEW : null);
  const look = JSON.stringify(useMemo(() => lookOf(screen), [screen]));
  const arrangement = useMemo(() => arrange(shown, layout, JSON.parse(look) as Look), [shown, layout, look]);
  return { arrangement, library };
}

const NO_FAULTS: readonly string[] = [];

export function findView(library: Pick<ViewLibrary, "mine" | "shared">, picture: PictureRef): NamedView | null {
  const known = [...BUILTIN_LIST, ...library.mine, ...library.shared];
  return known.find((view) => view.picture === picture) ?? null;
}

/** What to start with where the link says nothing; null: nothing to do, or not known yet. */
export function findStart(screen: Screen, library: ViewLibrary): NamedView | null {
  if (screen.picture !== null || screen.layout !== null) return null;
  const { ownStart, sharedStart, isSettled } = library;
  const own = ownStart === null ? null : findView(library, ownStart);
  if (own !== null) return own;
  return isSettled && sharedStart !== null ? findView(library, sharedStart) : null;
}

/** `shown`: the view that the link names; `layout`: as it was edited. */
export function arrange(shown: NamedView | null, layout: View | null, look: Look): Arrangement | null {
  if (shown === null && layout === null) return null;
  if (shown === null)
    return layout && { picture: null, title: "Unsaved layout", view: layout, saved: null, isEdited: true };
  const { document } = shown;
  const view = layout === null || isSameView(layout, document.view) ? document.view : layout;
  const isEdited = view !== document.view || !isSameLook(look, document.look);
  return { picture: shown.picture, title: document.title, view, saved: document, isEdited };
}
