// The view document: how units are grouped, how groups are arranged, how a unit is drawn. Plain JSON. Owns types,
// defaults and the shortest serialization; parse-view.ts parses it.

/** Raised when an older client could not read a newer document. */
export const VIEW_VERSION = 1;

/**
 * How the groups of a layer lie in the group around them.
 * - `pack`: each of a fixed aspect ratio, with the least empty space, whatever the order.
 * - `fillX`, `fillY`: side by side along X at the same height, or along Y at the same width; never wraps.
 * - `listX`, `listY`: in order along X or Y, wrapping where the space ends.
 */
export const LAYOUT_KINDS = ["pack", "fillX", "fillY", "listX", "listY"] as const;
export type LayoutKind = (typeof LAYOUT_KINDS)[number];

/** `uniform`: as large as the largest sibling. `count`: as large as its units need. A unit is always the same size. */
export const GROUP_SIZES = ["uniform", "count"] as const;
export type GroupSize = (typeof GROUP_SIZES)[number];

export const SORT_KEYS = ["name", "count", "value"] as const;
export type SortKey = (typeof SORT_KEYS)[number];

export const SORT_ORDERS = ["ascending", "descending"] as const;
export type SortOrder = (typeof SORT_ORDERS)[number];

export interface GroupSort {
  readonly by: SortKey;
  readonly order: SortOrder;
  /** The attribute whose mean over a group's units is its value; only with `by: "value"`. */
  readonly of: string | null;
}

export interface UnitSort {
  readonly by: string;
  readonly order: SortOrder;
}

export interface Bins {
  readonly metric: string;
  /** How many at most, at round numbers; or the limits between them, rising. */
  readonly bins: number | readonly number[];
}

export interface Layer {
  readonly by: string | Bins;
  readonly layout: LayoutKind;
  readonly size: GroupSize;
  readonly sort: GroupSort;
  /** Whether room is kept for the name above each group. */
  readonly label: boolean;
  /** Inside a group's border and between siblings, in sides of a unit; null: fitting the groups' size. */
  readonly padding: number | null;
  /** Width over height that a packed group aims at. */
  readonly aspect: number;
  /** In sides of a unit: the fixed height or width of a fill, the length at which a list wraps; null: from the space. */
  readonly limit: number | null;
}

export const UNIT_ORIGINS = ["top", "bottom"] as const;
export type UnitOrigin = (typeof UNIT_ORIGINS)[number];

export interface Mark {
  /** Units are alike, so a fill and a list differ only in their direction: `fillX` and `listY` go down, then right. */
  readonly layout: LayoutKind;
  /** Null: as units come, which is by node and index. */
  readonly sort: UnitSort | null;
  /** Between units, in sides of a unit. */
  readonly padding: number;
  /** Units across: a column of `fillX` and `listY`, a row of `fillY` and `listX`; null: from the space. */
  readonly limit: number | null;
  /** Where the first row lies; bars stand on the bottom. */
  readonly from: UnitOrigin;
  /** The attribute that colors units; null: their state. */
  readonly color: string | null;
}

/** `gpus`: what exists; `requested`: what waiting workloads ask for; `waiting`: those workloads, a square each. */
export const SHOWN_UNITS = ["all", "gpus", "requested", "waiting"] as const;
export type ShownUnits = (typeof SHOWN_UNITS)[number];

/** What becomes of units that a filter leaves out. */
export const FILTERED_MODES = ["fade", "vanish"] as const;
export type FilteredMode = (typeof FILTERED_MODES)[number];

export interface View {
  readonly units: ShownUnits;
  readonly filtered: FilteredMode;
  /** From the outermost to the innermost. */
  readonly layers: readonly Layer[];
  readonly mark: Mark;
}

export const DEFAULT_SORT: GroupSort = { by: "name", order: "ascending", of: null };

export const DEFAULT_LAYER: Omit<Layer, "by"> = {
  layout: "pack",
  size: "count",
  sort: DEFAULT_SORT,
  label: true,
  padding: null,
  aspect: 1,
  limit: null,
};

export const DEFAULT_MARK: Mark = {
  layout: "pack",
  sort: null,
  padding: 0.16,
  limit: null,
  from: "top",
  color: null,
};

export const DEFAULT_VIEW: View = { units: "all", filtered: "fade", layers: [], mark: DEFAULT_MARK };

/** Whether a view shows what waits. */
export function isOfQueue({ units }: View): boolean {
  return units === "requested" || units === "waiting";
}

export function makeLayer(by: string | Bins, changes: Partial<Omit<Layer, "by">> = {}): Layer {
  return { by, ...DEFAULT_LAYER, ...changes };
}

export function attributeOf(layer: Layer): string {
  return typeof layer.by === "string" ? layer.by : layer.by.metric;
}

/** JSON with defaults left out: equal views give equal text, short enough for a link. */
export function serializeView(view: View): string {
  return JSON.stringify({
    version: VIEW_VERSION,
    ...keepChanged({ units: view.units, filtered: view.filtered }, DEFAULT_VIEW),
    layers: view.layers.map(serializeLayer),
    ...keepChanged({ mark: keepChanged(view.mark, DEFAULT_MARK) }, { mark: {} }),
  });
}

function serializeLayer({ by, layout, size, sort, label, padding, aspect, limit }: Layer): object {
  const changed = keepChanged({ layout, size, label, padding, aspect, limit }, DEFAULT_LAYER);
  const changedSort = keepChanged({ by: sort.by, order: sort.order, of: sort.of }, DEFAULT_SORT);
  return {
    by: typeof by === "string" ? by : { metric: by.metric, bins: by.bins },
    ...changed,
    ...keepChanged({ sort: changedSort }, { sort: {} }),
  };
}

/** The fields of `value` that differ from `initial`, in the order of `initial`, so that equal views give equal text. */
function keepChanged<T extends object>(value: T, initial: Readonly<Record<keyof T, unknown>>): Partial<T> {
  const order = Object.keys(initial).filter((key): key is Extract<keyof T, string> => key in value);
  const changed: Partial<T> = {};
  for (const key of order) {
    if (JSON.stringify(value[key]) !== JSON.stringify(initial[key])) changed[key] = value[key];
  }
  return changed;
}
