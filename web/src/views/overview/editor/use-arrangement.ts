// The arrangement of the picture: the view that the link names or the start view, with the edits of the link.

import { useEffect, useLayoutEffect, useMemo, useState } from "react";
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

export const BUILTIN_LIST: readonly NamedView[] = BUILTIN_VIEWS.flatMap(({ key, title, view, look }) => {
  const picture = PICTURE_NAMES.find((name) => name === key);
  return picture ? [{ picture, name: key, document: { title, view, look: look ?? PLAIN_LOOK }, leftOut: [] }] : [];
});

const DEFAULT_VIEW = findDefault();

function findDefault(): NamedView {
  const view = BUILTIN_LIST.find(({ picture }) => picture === DEFAULT_PICTURE);
  if (view === undefined) throw new Error(`There is no arrangement named ${DEFAULT_PICTURE}`);
  return view;
}

export function useArrangement(screen: Screen): Arranged {
  const library = useViewLibrary();
  const store = useScreenStore();
  const start = useStart(library);
  const { picture, layout } = screen;
  const startView = picture === null && layout === null && start !== null ? findView(library, start) : null;
  // Before the first paint, so that no other view flashes. A link to the default view stays short.
  useLayoutEffect(() => {
    if (startView === null || startView.picture === DEFAULT_PICTURE) return;
    store.change(openPicture(startView.picture, startView.document.view, startView.document.look), "replace");
  }, [startView, store]);

  const named = picture === null ? startView : findView(library, picture);
  const builtin = BUILTIN_LIST.find((view) => view === named) ?? null;
  // A short link to a built-in view has its colors; if the reader changes them afterwards, they stay changed.
  useLayoutEffect(() => {
    if (builtin === null || isSameLook(builtin.document.look, PLAIN_LOOK)) return;
    const { layout: edited, ...now } = store.read().screen;
    if (edited !== null || !isSameLook(lookOf({ ...now, layout: null }), PLAIN_LOOK)) return;
    store.change(openPicture(builtin.picture, builtin.document.view, builtin.document.look), "replace");
  }, [builtin, store]);
  const isLost = picture !== null && named === null && layout === null && library.isSettled;
  const lost = isLost ? `There is no view ${picture}; ${DEFAULT_VIEW.document.title} is shown.` : null;
  const faults = named?.leftOut ?? NO_FAULTS;
  useEffect(() => store.note(lost === null ? faults : [lost]), [store, lost, faults]);

  const shown = named ?? (layout === null && library.isSettled ? DEFAULT_VIEW : null);
  const look = JSON.stringify(useMemo(() => lookOf(screen), [screen]));
  const arrangement = useMemo(() => arrange(shown, layout, JSON.parse(look) as Look), [shown, layout, look]);
  return { arrangement, library };
}

const NO_FAULTS: readonly string[] = [];

export function findView(library: Pick<ViewLibrary, "mine" | "shared">, picture: PictureRef): NamedView | null {
  const views = [...BUILTIN_LIST, ...library.mine, ...library.shared];
  return views.find((view) => view.picture === picture) ?? null;
}

/** Stays as first read: choosing another start view does not open it now. */
function useStart(library: ViewLibrary): PictureRef | null {
  const [first, setFirst] = useState<PictureRef | null>(null);
  const start = first ?? chooseStart(library);
  useEffect(() => setFirst(start), [start]);
  return start;
}

/** The start view of this browser before the site default; null while unknown. */
export function chooseStart(library: ViewLibrary): PictureRef | null {
  const { ownStart, sharedStart, isSettled } = library;
  if (ownStart !== null && findView(library, ownStart) !== null) return ownStart;
  if (!isSettled) return null;
  return sharedStart !== null && findView(library, sharedStart) !== null ? sharedStart : DEFAULT_PICTURE;
}

/** `shown`: the view that the link names; `layout`: the edited layout. */
export function arrange(shown: NamedView | null, layout: View | null, look: Look): Arrangement | null {
  if (shown === null && layout === null) return null;
  if (shown === null)
    return layout && { picture: null, title: "Unsaved layout", view: layout, saved: null, isEdited: true };
  const { document } = shown;
  const view = layout === null || isSameView(layout, document.view) ? document.view : layout;
  const isEdited = view !== document.view || !isSameLook(look, document.look);
  return { picture: shown.picture, title: document.title, view, saved: document, isEdited };
}
