// The arrangement of the picture in a link: a view by name, and the layout if it was edited. Defines what units can be
// grouped and sorted by; layout/parse-view.ts parses layouts.

import { serializeView, type View } from "../layout/grammar.ts";
import { type KnownAttributes, parseView } from "../layout/parse-view.ts";
import { ATTRIBUTES } from "./attributes.ts";
import type { Field } from "./fields.ts";

/** The arrangements that come with the client. */
export const PICTURE_NAMES = [
  "who-uses-what",
  "projects-by-partition",
  "waiting-by-resource-type",
  "fragmentation-by-host",
] as const;
export type PictureName = (typeof PICTURE_NAMES)[number];

export const DEFAULT_PICTURE: PictureName = "who-uses-what";

/** A built-in view, a shared one, or one that is stored in this browser. */
export type PictureRef = PictureName | `shared:${string}` | `mine:${string}`;

/** The server's pattern for names of views. */
const SAVED_REF = /^(?:shared|mine):[a-z0-9][a-z0-9_-]{0,63}$/;

export function parsePictureRef(text: string): PictureRef | undefined {
  return PICTURE_NAMES.find((name) => name === text) ?? (SAVED_REF.test(text) ? (text as PictureRef) : undefined);
}

export function isMine(picture: PictureRef | null): picture is `mine:${string}` {
  return picture?.startsWith("mine:") ?? false;
}

export const pictureField: Field<PictureRef | null> = {
  key: "picture",
  initial: null,
  parse: ([text = ""]) => parsePictureRef(text),
  serialize: (picture) => (picture ? [picture] : []),
};

/** Attributes that units may have; whether they have values is known only from the data. */
export const LAYOUT_ATTRIBUTES: KnownAttributes = {
  names: ATTRIBUTES.filter(({ kind }) => kind === "name").map(({ name }) => name),
  numbers: ATTRIBUTES.filter(({ kind }) => kind === "number").map(({ name }) => name),
};

export const LAYOUT_KEY = "layout";

/** Parses the layout of a link; invalid parts are ignored and added to the notices. */
export function parseLayout(text: string | null, notices: string[]): View | null {
  if (text === null) return null;
  if (!isObject(text)) {
    notices.push("The layout in the link is not a view; it was ignored.");
    return null;
  }
  const { view, leftOut } = parseView(text, LAYOUT_ATTRIBUTES);
  notices.push(...leftOut);
  return view;
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

export function isSameView(a: View, b: View): boolean {
  return a === b || serializeView(a) === serializeView(b);
}
