// The colors of the picture as a saved view stores them: the link settings whose keys start with `color`. Settings that
// are added later are stored without a change here.

import { parseScreen, type Screen, serializeScreen, VIEW_NAMES } from "./screen.ts";

/** Values by key; keys in order, so that equal looks are equal text. */
export type Look = Readonly<Record<string, readonly string[]>>;

export const PLAIN_LOOK: Look = {};

const LOOK_PREFIX = "color";

export function isLookKey(key: string): boolean {
  return key.startsWith(LOOK_PREFIX);
}

export function lookOf(screen: Screen): Look {
  const parameters = parametersOf(screen);
  const keys = [...new Set(parameters.keys())].filter(isLookKey).sort();
  return Object.fromEntries(keys.map((key) => [key, parameters.getAll(key)]));
}

/** The screen with the colors of a look; invalid settings are ignored. */
export function withLook(screen: Screen, look: Look): Screen {
  const parameters = parametersOf(screen);
  for (const key of new Set(parameters.keys())) if (isLookKey(key)) parameters.delete(key);
  for (const [key, values] of Object.entries(look)) {
    if (isLookKey(key)) for (const value of values) parameters.append(key, value);
  }
  const colored = parseScreen(`/${screen.view}`, `?${parameters}`, VIEW_NAMES).screen;
  // Without the layout, which is expensive to write and parse and would become a new object.
  return { ...colored, layout: screen.layout };
}

export function isSameLook(a: Look, b: Look): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function parametersOf(screen: Screen): URLSearchParams {
  return new URL(serializeScreen({ ...screen, layout: null }), "http://page").searchParams;
}
