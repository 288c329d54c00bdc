// How the picture is colored, as a saved view keeps it: the settings of the link whose keys begin with `color`, as they
// stand there. A setting that comes later is kept and brought back without a change here.

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

/** The same screen in other colors; what of the look means nothing here is left out. */
export function withLook(screen: Screen, look: Look): Screen {
  const parameters = parametersOf(screen);
  for (const key of new Set(parameters.keys())) if (isLookKey(key)) parameters.delete(key);
  for (const [key, values] of Object.entries(look)) {
    if (isLookKey(key)) for (const value of values) parameters.append(key, value);
  }
  const colored = parseScreen(`/${screen.view}`, `?${parameters}`, VIEW_NAMES).screen;
  // The layout is written and read at some cost and would come back as another object.
  return { ...colored, layout: screen.layout };
}

export function isSameLook(a: Look, b: Look): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function parametersOf(screen: Screen): URLSearchParams {
  return new URL(serializeScreen({ ...screen, layout: null }), "http://page").searchParams;
}
