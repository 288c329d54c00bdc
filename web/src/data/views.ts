// Saved views: shared ones on the server, private ones in this browser, and the one that the page opens with.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useSyncExternalStore } from "react";
import type { SavedViews } from "../api/generated.ts";
import { Problem, toProblem } from "../base/problem.ts";
import { readStored, writeStored } from "../base/storage.ts";
import { isMine, type PictureRef, parsePictureRef } from "../state/picture.ts";
import { type ReadDocument, readDocument, type ViewDocument, writeDocument } from "../state/view-document.ts";
import { useServices } from "./services.ts";

export interface NamedView extends ReadDocument {
  readonly picture: PictureRef;
  readonly name: string;
}

export interface ViewLibrary {
  /** False until the server has responded or failed. */
  readonly isSettled: boolean;
  /** Why the shared views cannot be shown. */
  readonly problem: Problem | null;
  readonly shared: readonly NamedView[];
  readonly mine: readonly NamedView[];
  /** The start view of this browser; null: the site default. */
  readonly ownStart: PictureRef | null;
  /** The default start view of the site; null: none. */
  readonly sharedStart: PictureRef | null;
}

const QUERY_KEY = ["views"] as const;
const MINE_KEY = "clusterscape.views";
const START_KEY = "clusterscape.start-view";
/** Dispatched when this page has written: browsers notify only other pages. */
const WRITTEN = "clusterscape:views";

export function useViewLibrary(): ViewLibrary {
  const { client } = useServices();
  const { data, error, isPending } = useQuery({
    queryKey: QUERY_KEY,
    queryFn: ({ signal }) => client.views(signal),
    refetchOnWindowFocus: true,
    staleTime: 0,
    // The picture waits for the start view, but not if the server cannot provide it.
    retry: false,
  });
  const shared = useMemo(() => (data ? readShared(data) : []), [data]);
  const stored = useSyncExternalStore(subscribe, () => readStored(MINE_KEY));
  const mine = useMemo(() => readMine(stored), [stored]);
  const start = useSyncExternalStore(subscribe, () => readStored(START_KEY));
  return {
    isSettled: !isPending,
    problem: error ? toProblem(error) : null,
    shared,
    mine,
    ownStart: parsePictureRef(start ?? "") ?? null,
    sharedStart: data?.start_view ? (parseStart(data.start_view) ?? null) : null,
  };
}

export interface ViewActions {
  /** Inserts or replaces. */
  save(picture: PictureRef, document: ViewDocument): Promise<void>;
  remove(picture: PictureRef): Promise<void>;
  /** The start view of this browser; null: the site default. */
  startHere(picture: PictureRef | null): void;
  startEverybody(picture: PictureRef | null): Promise<void>;
}

export function useViewActions(): ViewActions {
  const { client } = useServices();
  const queries = useQueryClient();
  return useMemo(() => {
    const refresh = () => queries.invalidateQueries({ queryKey: QUERY_KEY });
    return {
      async save(picture, document) {
        if (isMine(picture)) writeMine((views) => ({ ...views, [nameOf(picture)]: writeDocument(document) }));
        else await client.saveView(nameOf(picture), writeDocument(document)).finally(refresh);
      },
      async remove(picture) {
        if (isMine(picture)) {
          writeMine(({ [nameOf(picture)]: _, ...others }) => others);
          return;
        }
        await client.removeView(nameOf(picture)).finally(refresh);
      },
      startHere: (picture) => write(START_KEY, picture ?? ""),
      startEverybody: (picture) => client.setStartView(picture && writeStart(picture)).finally(refresh),
    };
  }, [client, queries]);
}

/** The name under which a view is stored. */
export function nameOf(picture: PictureRef): string {
  return picture.slice(picture.indexOf(":") + 1);
}

function readShared({ views }: SavedViews): readonly NamedView[] {
  return views.flatMap(({ name, document }) => readNamed(`shared:${name}`, document));
}

export function readMine(stored: string | null): readonly NamedView[] {
  return Object.entries(parseMine(stored))
    .flatMap(([name, document]) => readNamed(`mine:${name}`, document))
    .sort((a, b) => a.document.title.localeCompare(b.document.title));
}

function readNamed(ref: string, document: unknown): readonly NamedView[] {
  const picture = parsePictureRef(ref);
  const read = readDocument(document);
  return picture && read ? [{ picture, name: nameOf(picture), ...read }] : [];
}

function parseMine(stored: string | null): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(stored ?? "{}");
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
  } catch {
    return {};
  }
}

/** Throws if this browser cannot store. */
function writeMine(change: (views: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>): void {
  const text = JSON.stringify(change(parseMine(readStored(MINE_KEY))));
  write(MINE_KEY, text);
  if (readStored(MINE_KEY) === text) return;
  throw new Problem("This browser could not save the view.", {
    code: "storage",
    hint: "Its storage is full or disabled. Share the view with everybody, or export it.",
  });
}

function write(key: string, text: string): void {
  writeStored(key, text);
  window.dispatchEvent(new Event(WRITTEN));
}

function subscribe(listener: () => void): () => void {
  window.addEventListener("storage", listener);
  window.addEventListener(WRITTEN, listener);
  return () => {
    window.removeEventListener("storage", listener);
    window.removeEventListener(WRITTEN, listener);
  };
}

const BUILT_IN = "builtin:";

function parseStart(name: string): PictureRef | undefined {
  return parsePictureRef(name.startsWith(BUILT_IN) ? name.slice(BUILT_IN.length) : `shared:${name}`);
}

function writeStart(picture: PictureRef): string {
  return picture.startsWith("shared:") ? nameOf(picture) : `${BUILT_IN}${picture}`;
}
