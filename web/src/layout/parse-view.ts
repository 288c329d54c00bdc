// Parses a view document from any source: keeps what is valid, and reports what was ignored.

import {
  type Bins,
  DEFAULT_LAYER,
  DEFAULT_MARK,
  DEFAULT_SORT,
  DEFAULT_VIEW,
  FILTERED_MODES,
  GROUP_SIZES,
  type GroupSort,
  LAYOUT_KINDS,
  type Layer,
  type Mark,
  SHOWN_UNITS,
  SORT_KEYS,
  SORT_ORDERS,
  UNIT_ORIGINS,
  type UnitSort,
  VIEW_VERSION,
  type View,
} from "./grammar.ts";

/** The attributes that units have here. */
export interface KnownAttributes {
  readonly names: readonly string[];
  /** Numbers can be binned, averaged and shown in color. */
  readonly numbers: readonly string[];
}

export interface ParsedView {
  readonly view: View;
  /** What of the document was left out, a sentence each. */
  readonly leftOut: readonly string[];
}

export const MAX_LAYERS = 8;
export const MAX_BINS = 50;
export const MAX_PADDING = 100;
export const MAX_ASPECT = 20;
export const MAX_LIMIT = 100_000;
/** Of a value quoted in a sentence. */
const MAX_QUOTED = 60;

/** Takes the document or its JSON text. */
export function parseView(input: unknown, known: KnownAttributes): ParsedView {
  const leftOut: string[] = [];
  const document = typeof input === "string" ? parseText(input) : input;
  if (!isRecord(document)) {
    return { view: DEFAULT_VIEW, leftOut: ["This is not a view; all units are shown without groups."] };
  }
  const { version } = document;
  if (typeof version === "number" && version > VIEW_VERSION) {
    leftOut.push("The view was made by a newer version of ClusterScape; unknown settings were ignored.");
  }
  const read = new Reader(document, "The view", leftOut);
  const view: View = {
    units: read.choice("units", SHOWN_UNITS, DEFAULT_VIEW.units),
    filtered: read.choice("filtered", FILTERED_MODES, DEFAULT_VIEW.filtered),
    layers: parseLayers(read.list("layers"), known, leftOut),
    mark: parseMark(read.record("mark"), known, leftOut),
  };
  read.finish(["version"]);
  return { view, leftOut };
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function parseLayers(items: readonly unknown[], known: KnownAttributes, leftOut: string[]): readonly Layer[] {
  const layers = items.map((item, index) => parseLayer(item, `Layer ${index + 1}`, known, leftOut));
  const valid = layers.filter((layer) => layer !== null);
  if (valid.length > MAX_LAYERS)
    leftOut.push(`A view has at most ${MAX_LAYERS} layers; the innermost ones were ignored.`);
  return valid.slice(0, MAX_LAYERS);
}

function parseLayer(item: unknown, place: string, known: KnownAttributes, leftOut: string[]): Layer | null {
  const by = isRecord(item) ? parseBy(item.by, place, known, leftOut) : null;
  if (!isRecord(item)) leftOut.push(`${place} is not a layer; it was ignored.`);
  if (!isRecord(item) || by === null) return null;
  const read = new Reader(item, place, leftOut);
  const layer: Layer = {
    by,
    layout: read.choice("layout", LAYOUT_KINDS, DEFAULT_LAYER.layout),
    size: read.choice("size", GROUP_SIZES, DEFAULT_LAYER.size),
    sort: parseSort(read.record("sort"), place, by, known, leftOut),
    label: read.flag("label", DEFAULT_LAYER.label),
    padding: read.number("padding", 0, MAX_PADDING, DEFAULT_LAYER.padding),
    aspect: read.number("aspect", 1 / MAX_ASPECT, MAX_ASPECT, DEFAULT_LAYER.aspect),
    limit: read.number("limit", 1, MAX_LIMIT, DEFAULT_LAYER.limit),
  };
  read.finish(["by"]);
  return layer;
}

function parseBy(value: unknown, place: string, known: KnownAttributes, leftOut: string[]): string | Bins | null {
  if (typeof value === "string") {
    if (known.names.includes(value) || known.numbers.includes(value)) return value;
    leftOut.push(`${place} groups by ${quote(value)}, which units do not have; it was ignored.`);
    return null;
  }
  if (!isRecord(value) || typeof value.metric !== "string") {
    leftOut.push(`${place} has no attribute to group by; it was ignored.`);
    return null;
  }
  const { metric } = value;
  if (!known.numbers.includes(metric)) {
    leftOut.push(`${place} groups by the metric ${quote(metric)}, which units do not have; it was ignored.`);
    return null;
  }
  const bins = parseBins(value.bins);
  if (bins === null) leftOut.push(`${place} has bins ${quote(value.bins)}, which are invalid; it uses 5 bins.`);
  return { metric, bins: bins ?? 5 };
}

function parseBins(value: unknown): number | readonly number[] | null {
  if (typeof value === "number") return Number.isInteger(value) && value >= 1 && value <= MAX_BINS ? value : null;
  if (!Array.isArray(value) || value.length === 0 || value.length >= MAX_BINS) return null;
  const limits: number[] = [];
  for (const limit of value as unknown[]) {
    if (typeof limit !== "number" || !Number.isFinite(limit) || limit <= (limits.at(-1) ?? -Infinity)) return null;
    limits.push(limit);
  }
  return limits;
}

function parseSort(
  source: Readonly<Record<string, unknown>>,
  layerPlace: string,
  layerBy: string | Bins,
  known: KnownAttributes,
  leftOut: string[],
): GroupSort {
  const read = new Reader(source, `${layerPlace}'s sort`, leftOut);
  const by = read.choice("by", SORT_KEYS, DEFAULT_SORT.by);
  const order = read.choice("order", SORT_ORDERS, DEFAULT_SORT.order);
  const of = read.attribute("of", known.numbers);
  read.finish([]);
  if (by !== "value") return { by, order, of: null };
  if (of !== null || typeof layerBy !== "string") return { by, order, of };
  leftOut.push(`${layerPlace} sorts by a value but names no metric; it is sorted by name.`);
  return { by: "name", order, of: null };
}

function parseMark(source: Readonly<Record<string, unknown>>, known: KnownAttributes, leftOut: string[]): Mark {
  const read = new Reader(source, "The unit mark", leftOut);
  const every = [...known.names, ...known.numbers];
  const mark: Mark = {
    layout: read.choice("layout", LAYOUT_KINDS, DEFAULT_MARK.layout),
    sort: parseUnitSort(read.optionalRecord("sort"), every, leftOut),
    padding: read.number("padding", 0, MAX_PADDING, DEFAULT_MARK.padding),
    limit: read.number("limit", 1, MAX_LIMIT, DEFAULT_MARK.limit),
    from: read.choice("from", UNIT_ORIGINS, DEFAULT_MARK.from),
    color: read.attribute("color", every),
  };
  read.finish([]);
  return mark;
}

function parseUnitSort(
  source: Readonly<Record<string, unknown>> | null,
  every: readonly string[],
  leftOut: string[],
): UnitSort | null {
  if (source === null) return null;
  const read = new Reader(source, "The unit mark's sort", leftOut);
  const by = read.attribute("by", every);
  const order = read.choice("order", SORT_ORDERS, DEFAULT_SORT.order);
  read.finish([]);
  return by === null ? null : { by, order };
}

/** Takes one field after another out of an object, and at the end names the fields nobody took. */
class Reader {
  readonly #source: Readonly<Record<string, unknown>>;
  readonly #place: string;
  readonly #leftOut: string[];
  readonly #taken = new Set<string>();

  constructor(source: Readonly<Record<string, unknown>>, place: string, leftOut: string[]) {
    this.#source = source;
    this.#place = place;
    this.#leftOut = leftOut;
  }

  choice<T extends string>(key: string, choices: readonly T[], initial: T): T {
    return this.#read(key, initial, (value) => choices.find((choice) => choice === value));
  }

  flag(key: string, initial: boolean): boolean {
    return this.#read(key, initial, (value) => (typeof value === "boolean" ? value : undefined));
  }

  number<T extends number | null>(key: string, min: number, max: number, initial: T): number | T {
    return this.#read<number | T>(key, initial, (value) =>
      typeof value === "number" && value >= min && value <= max ? value : undefined,
    );
  }

  attribute(key: string, known: readonly string[]): string | null {
    return this.#read<string | null>(key, null, (value) => known.find((name) => name === value));
  }

  record(key: string): Readonly<Record<string, unknown>> {
    return this.#read(key, {}, (value) => (isRecord(value) ? value : undefined));
  }

  optionalRecord(key: string): Readonly<Record<string, unknown>> | null {
    return this.#read<Readonly<Record<string, unknown>> | null>(key, null, (value) =>
      isRecord(value) ? value : undefined,
    );
  }

  list(key: string): readonly unknown[] {
    return this.#read<readonly unknown[]>(key, [], (value) => (Array.isArray(value) ? value : undefined));
  }

  finish(taken: readonly string[]): void {
    for (const key of Object.keys(this.#source)) {
      if (this.#taken.has(key) || taken.includes(key)) continue;
      this.#leftOut.push(`${this.#place} has a setting ${quote(key)}, which is invalid; it was ignored.`);
    }
  }

  #read<T>(key: string, initial: T, parse: (value: unknown) => T | undefined): T {
    this.#taken.add(key);
    const value = Object.hasOwn(this.#source, key) ? this.#source[key] : undefined;
    if (value === undefined || value === null) return initial;
    const parsed = parse(value);
    if (parsed !== undefined) return parsed;
    this.#leftOut.push(`${this.#place} has ${key} ${quote(value)}, which is invalid; it was ignored.`);
    return initial;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function quote(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing");
  const characters = [...text];
  return characters.length > MAX_QUOTED ? `“${characters.slice(0, MAX_QUOTED).join("")}…”` : `“${text}”`;
}
