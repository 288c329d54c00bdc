// Actions on views: save, rename, overwrite, delete with undo, choose the start view, copy, export, import.

import { useMemo, useState } from "react";
import { copyText } from "../../../base/clipboard.ts";
import { downloadText } from "../../../base/download.ts";
import { toProblem, toSentence } from "../../../base/problem.ts";
import { type NamedView, nameOf, useViewActions, type ViewLibrary } from "../../../data/views.ts";
import { openPicture } from "../../../state/changes.ts";
import { lookOf, withLook } from "../../../state/look.ts";
import type { PictureRef } from "../../../state/picture.ts";
import { INITIAL_SCREEN, serializeScreen } from "../../../state/screen.ts";
import { useScreenStore } from "../../../state/use-screen.ts";
import {
  explainUnreadable,
  nameView,
  readDocument,
  type ViewDocument,
  writeDocument,
} from "../../../state/view-document.ts";
import type { Notice } from "../../../widgets/toast.tsx";
import type { Editor } from "./use-editor.ts";

export type Scope = "mine" | "shared";

export interface Views {
  readonly notice: Notice | null;
  dismiss(): void;
  /** The current view as a document. */
  current(title: string): ViewDocument | null;
  /** Replaces the view with this title and scope, if there is one. */
  saveAs(title: string, scope: Scope): Promise<void>;
  overwrite(view: NamedView): Promise<void>;
  rename(view: NamedView, title: string): Promise<void>;
  remove(view: NamedView): Promise<void>;
  toggleStartHere(picture: PictureRef): void;
  toggleStartEverybody(picture: PictureRef): Promise<void>;
  copyLink(view: NamedView): Promise<void>;
  copyJson(view: NamedView): Promise<void>;
  exportJson(view: NamedView): void;
  /** Why the text is invalid; null: it was opened. */
  importJson(text: string): string | null;
}

export function useViews(editor: Editor): Views {
  const store = useScreenStore();
  const actions = useViewActions();
  const [notice, setNotice] = useState<Notice | null>(null);
  const { arrangement, library } = editor;
  const notify = (text: string, undo: Notice["undo"] = null) => setNotice({ text, undo });
  const attempt = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      const { message, hint } = toProblem(error);
      notify(
        [message, hint]
          .filter((text) => text !== null)
          .map(toSentence)
          .join(" "),
      );
    }
  };
  const current = (title: string): ViewDocument | null =>
    arrangement && { title, view: arrangement.view, look: lookOf(store.read().screen) };
  const save = (picture: PictureRef, document: ViewDocument, words: string) =>
    attempt(async () => {
      await actions.save(picture, document);
      store.change(openPicture(picture, document.view, document.look), "replace");
      notify(words);
    });
  const copy = (text: string, words: string) =>
    attempt(async () => {
      await copyText(text);
      notify(words);
    });

  return {
    notice,
    dismiss: () => setNotice(null),
    current,
    async saveAs(title, scope) {
      const document = current(title);
      if (document === null) return;
      const same = findByTitle(library, scope, title);
      const name =
        same?.name ??
        nameView(
          title,
          library[scope].map((view) => view.name),
        );
      await save(`${scope}:${name}`, document, same ? `“${title}” replaced.` : `“${title}” saved.`);
    },
    async overwrite({ picture, document: { title } }) {
      const document = current(title);
      if (document !== null) await save(picture, document, `“${title}” saved.`);
    },
    rename: (view, title) =>
      attempt(async () => {
        await actions.save(view.picture, { ...view.document, title });
      }),
    remove: (view) =>
      attempt(async () => {
        const { picture, document } = view;
        const isOpen = arrangement?.picture === picture;
        const wasStart = { here: library.ownStart === picture, everybody: library.sharedStart === picture };
        // The current view stays on the screen.
        if (isOpen) editor.detach();
        await actions.remove(picture);
        if (wasStart.here) actions.startHere(null);
        const bringBack = async () => {
          await actions.save(picture, document);
          if (wasStart.here) actions.startHere(picture);
          if (wasStart.everybody) await actions.startEverybody(picture);
          if (isOpen) store.change((screen) => ({ ...screen, picture }), "replace");
          setNotice(null);
        };
        notify(`“${document.title}” deleted.`, () => void attempt(bringBack));
      }),
    toggleStartHere(picture) {
      const isStart = library.ownStart === picture;
      actions.startHere(isStart ? null : picture);
      notify(isStart ? "This browser now starts with the site default." : "This browser now starts with this view.");
    },
    toggleStartEverybody: (picture) =>
      attempt(async () => {
        const isStart = library.sharedStart === picture;
        await actions.startEverybody(isStart ? null : picture);
        notify(isStart ? "The site has no default view now." : "This view is now the site default.");
      }),
    copyLink: ({ picture, document }) => {
      const screen = openPicture(picture, document.view, document.look)(INITIAL_SCREEN);
      return copy(`${location.origin}${serializeScreen(screen)}`, "Link copied.");
    },
    copyJson: ({ document }) => copy(formatJson(document), "JSON copied."),
    exportJson: ({ picture, document }) =>
      downloadText(`${nameOf(picture)}.view.json`, formatJson(document), "application/json"),
    importJson(text) {
      const read = readDocument(text);
      if (read === null) return explainUnreadable(text);
      const { document, leftOut } = read;
      store.change((screen) => withLook({ ...screen, picture: null, layout: document.view }, document.look));
      store.note(leftOut);
      notify(`“${document.title}” opened. Save it to keep it.`);
      return null;
    },
  };
}

export function findByTitle(library: ViewLibrary, scope: Scope, title: string): NamedView | null {
  const needle = title.trim().toLowerCase();
  return library[scope].find(({ document }) => document.title.trim().toLowerCase() === needle) ?? null;
}

/** The view that the page opens with if the link names none. */
export function startOf({ ownStart, sharedStart }: ViewLibrary): PictureRef | null {
  return ownStart ?? sharedStart;
}

function formatJson(document: ViewDocument): string {
  return `${JSON.stringify(writeDocument(document), null, 2)}\n`;
}

export interface ViewGroups {
  readonly title: string;
  readonly views: readonly NamedView[];
}

export function useViewGroups(builtin: readonly NamedView[], { mine, shared }: ViewLibrary): readonly ViewGroups[] {
  return useMemo(
    () =>
      [
        { title: "Built-in", views: builtin },
        { title: "Mine", views: mine },
        { title: "Shared", views: shared },
      ].filter(({ views }) => views.length > 0),
    [builtin, mine, shared],
  );
}
