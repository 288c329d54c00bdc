// A view as it is saved, shared and exported: one JSON object with title, layout and colors. Of an invalid document the
// valid parts are kept, and what was ignored is reported.

import { serializeView, type View } from "../layout/grammar.ts";
import { parseView } from "../layout/parse-view.ts";
import { isLookKey, type Look, PLAIN_LOOK } from "./look.ts";
import { LAYOUT_ATTRIBUTES } from "./picture.ts";

export interface ViewDocument {
  readonly title: string;
  readonly view: View;
  readonly look: Look;
}

export interface ReadDocument {
  readonly document: ViewDocument;
  /** A sentence each. */
  readonly leftOut: readonly string[];
}

export const MAX_TITLE = 200;
const UNTITLED = "Untitled view";

/** The stored JSON; `version` is that of the grammar. */
export function writeDocument({ title, view, look }: ViewDocument): {
  readonly version: number;
  readonly title: string;
  readonly [field: string]: unknown;
} {
  const { version, ...layout } = JSON.parse(serializeView(view)) as { version: number };
  const colors = Object.keys(look).length > 0 ? { look } : {};
  return { version, title, ...layout, ...colors };
}

/** Accepts the object or its text; null: neither. */
export function readDocument(input: unknown): ReadDocument | null {
  const source = typeof input === "string" ? parseText(input) : input;
  if (!isRecord(source) || !("layers" in source || "mark" in source)) return null;
  const { title, look, ...layout } = source;
  const { view, leftOut } = parseView(layout, LAYOUT_ATTRIBUTES);
  const colors = readLook(look);
  const document = { title: readTitle(title), view, look: colors ?? PLAIN_LOOK };
  return { document, leftOut: colors ? leftOut : [...leftOut, "The view's colors are invalid; they were ignored."] };
}

/** Explains why a pasted text is not a view: where it stops being JSON, or what is missing. */
export function explainUnreadable(text: string): string {
  try {
    JSON.parse(text);
    return "This is not a view: it has neither layers nor a mark.";
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : String(error)}.`;
  }
}

function readTitle(title: unknown): string {
  const text = typeof title === "string" ? title.trim() : "";
  return text === "" ? UNTITLED : cutTitle(text);
}

/** Cuts at whole characters, never inside an emoji. */
export function cutTitle(text: string): string {
  let title = "";
  for (const character of text) {
    if (title.length + character.length > MAX_TITLE) break;
    title += character;
  }
  return title;
}

function readLook(source: unknown): Look | null {
  if (source === undefined || source === null) return PLAIN_LOOK;
  if (!isRecord(source)) return null;
  const entries = Object.entries(source).filter(([key, values]) => isLookKey(key) && isTexts(values));
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))) as Look;
}

function isTexts(values: unknown): boolean {
  return Array.isArray(values) && values.every((value) => typeof value === "string");
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const MAX_NAME = 48;

/** A name for links, made from the title; unique among existing names. */
export function nameView(title: string, taken: readonly string[]): string {
  const plain = title
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/\p{Mark}/gu, "");
  const letters = plain.replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-+|-+$/g, "");
  const base = letters.slice(0, MAX_NAME).replace(/-+$/, "") || "view";
  if (!taken.includes(base)) return base;
  let number = 2;
  while (taken.includes(`${base}-${number}`)) number += 1;
  return `${base}-${number}`;
}
