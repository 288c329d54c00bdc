// What a link holds: which view, which picture or table in which order, filters, selection. One versioned schema for all of it;
// parse and serialize are each other's inverse, defaults are left out, and nothing in a link can break the page.

import { serializeView, type View } from "../layout/grammar.ts";
import { choiceField, type Field, namesField, textField } from "./fields.ts";
import { LAYOUT_KEY, type PictureRef, parseLayout, pictureField } from "./picture.ts";
import { type Moment, momentField } from "./time.ts";

/** Written as `v` from version 2 on; links without it are of version 1. */
export const SCREEN_VERSION = 1;

export const VIEW_NAMES = ["overview", "rules", "diagnostics", "parallel", "scheduling", "runs"] as const;
export type ViewName = (typeof VIEW_NAMES)[number];

/** The picture has the rows of the table of units, drawn. */
export const TABLE_NAMES = ["picture", "workloads", "units", "nodes"] as const;
export type TableName = (typeof TABLE_NAMES)[number];

/** What units of the picture can be colored by. */
export const COLOR_NAMES = [
  "gpu_util_ratio",
  "sm_active_ratio",
  "tensor_active_ratio",
  "dram_active_ratio",
  "power_watts",
  "memory_used_bytes",
  "gpu_temperature_celsius",
  "wait_s",
  "unit_state",
  "workload",
  "user",
  "project",
  "partition",
  "machine_type",
] as const;
export type ColorName = (typeof COLOR_NAMES)[number];

const UNIT_ROWS = {
  columns: ["unit", "partition", "type", "util", "power", "memory", "temperature", "user", "workload", "project"],
  states: ["allocated", "free", "unavailable", "stale", "requested"],
} as const;

/** The columns each table can be sorted by, and the states its rows can be filtered by. */
export const TABLES = {
  picture: UNIT_ROWS,
  workloads: {
    columns: ["workload", "user", "project", "partition", "gpus", "util", "power", "memory", "waited", "running"],
    states: [
      "running",
      "waiting",
      "suspended",
      "completed",
      "failed",
      "cancelled",
      "timeout",
      "out_of_memory",
      "node_failed",
      "preempted",
      "unknown",
    ],
  },
  units: UNIT_ROWS,
  nodes: {
    columns: ["node", "state", "partition", "type", "gpus", "util", "power", "memory", "rack", "driver"],
    states: ["idle", "mixed", "allocated", "draining", "drained", "down", "unknown", "stale"],
  },
} as const satisfies Record<TableName, { columns: readonly string[]; states: readonly string[] }>;

export type TableColumn<T extends TableName = TableName> = (typeof TABLES)[T]["columns"][number];

export interface Sort {
  readonly column: string;
  readonly descending: boolean;
}

export const FILTER_NAMES = ["state", "partition", "project", "user"] as const;
export type FilterName = (typeof FILTER_NAMES)[number];
export type Filters = Readonly<Record<FilterName, readonly string[]>>;

/** One thing per filter. */
export function perFilter<T>(make: (name: FilterName) => T): Readonly<Record<FilterName, T>> {
  return { state: make("state"), partition: make("partition"), project: make("project"), user: make("user") };
}

export const SELECTION_KINDS = ["workload", "unit", "node"] as const;
export type SelectionKind = (typeof SELECTION_KINDS)[number];

export interface Selection {
  readonly kind: SelectionKind;
  readonly key: string;
}

export interface Screen {
  readonly view: ViewName;
  readonly table: TableName;
  /** Null: the start view. */
  readonly picture: PictureRef | null;
  /** The layout as it was edited; null: that of the picture. */
  readonly layout: View | null;
  /** Null: what the arrangement of the picture is meant to show. */
  readonly color: ColorName | null;
  /** Null: the table's own order. */
  readonly sort: Sort | null;
  readonly text: string;
  readonly filters: Filters;
  readonly selection: Selection | null;
  /** The minute the whole screen is of; null: the present. */
  readonly at: Moment;
}

const sortField: Field<Sort | null> = {
  key: "sort",
  initial: null,
  parse([text = ""]) {
    const [, minus, column] = /^(-?)([a-z_]+)$/.exec(text) ?? [];
    return column === undefined ? undefined : { column, descending: minus === "-" };
  },
  serialize: (sort) => (sort ? [`${sort.descending ? "-" : ""}${sort.column}`] : []),
};

const selectionField: Field<Selection | null> = {
  key: "select",
  initial: null,
  parse([text = ""]) {
    const colon = text.indexOf(":");
    const kind = SELECTION_KINDS.find((name) => name === text.slice(0, colon));
    const key = text.slice(colon + 1);
    return kind && key ? { kind, key } : undefined;
  },
  serialize: (selection) => (selection ? [`${selection.kind}:${selection.key}`] : []),
};

const colorField: Field<ColorName | null> = {
  key: "color",
  initial: null,
  parse: ([text]) => COLOR_NAMES.find((name) => name === text),
  serialize: (color) => (color ? [color] : []),
};

const tableField = choiceField("table", TABLE_NAMES, "picture");
const queryField = textField("q");
const filterFields = perFilter(namesField);

export const INITIAL_SCREEN: Screen = {
  view: "overview",
  table: tableField.initial,
  picture: pictureField.initial,
  layout: null,
  color: null,
  sort: null,
  text: "",
  filters: perFilter(() => []),
  selection: null,
  at: null,
};

export interface ParsedScreen {
  readonly screen: Screen;
  /** What of the link was left out, in words. */
  readonly notices: readonly string[];
}

export function parseScreen(pathname: string, search: string, views: readonly ViewName[]): ParsedScreen {
  const parameters = new URLSearchParams(search);
  const notices: string[] = [];
  const read = <T>(field: Field<T>): T => {
    const texts = parameters.getAll(field.key);
    if (texts.length === 0) return field.initial;
    const value = field.parse(texts);
    if (value !== undefined) return value;
    notices.push(`The link says ${field.key}=${texts.join(", ")}, which means nothing here; it was left out.`);
    return field.initial;
  };

  if (Number(parameters.get("v") ?? "1") > SCREEN_VERSION) {
    notices.push("The link was made by a newer ClusterScape; what this one does not know was left out.");
  }
  const table = read(tableField);
  const screen: Screen = {
    view: parseView(pathname, views, notices),
    table,
    picture: read(pictureField),
    layout: parseLayout(parameters.get(LAYOUT_KEY), notices),
    color: read(colorField),
    sort: checkSort(read(sortField), table, notices),
    text: read(queryField),
    filters: checkStates(
      perFilter((name) => read(filterFields[name])),
      table,
      notices,
    ),
    selection: read(selectionField),
    at: read(momentField),
  };
  return { screen, notices };
}

function parseView(pathname: string, views: readonly ViewName[], notices: string[]): ViewName {
  const name = pathname.replace(/^\/+|\/+$/g, "");
  if (name === "") return INITIAL_SCREEN.view;
  const view = views.find((known) => known === name);
  if (view === undefined) notices.push(`There is no view named ${name}; this is the overview.`);
  return view ?? INITIAL_SCREEN.view;
}

function checkSort(sort: Sort | null, table: TableName, notices: string[]): Sort | null {
  if (sort === null || isColumn(table, sort.column)) return sort;
  notices.push(`The link sorts by ${sort.column}, which the table of ${table} does not have; it was left out.`);
  return null;
}

export function isColumn(table: TableName, column: string): boolean {
  return (TABLES[table].columns as readonly string[]).includes(column);
}

function checkStates(filters: Filters, table: TableName, notices: string[]): Filters {
  const known = keepStates(filters.state, table);
  if (known.length < filters.state.length) {
    const unknown = filters.state.filter((state) => !known.includes(state));
    notices.push(`The table of ${table} knows no state ${unknown.join(", ")}; it was left out.`);
  }
  return { ...filters, state: known };
}

export function keepStates(states: readonly string[], table: TableName): readonly string[] {
  return states.filter((state) => (TABLES[table].states as readonly string[]).includes(state));
}

/** The link to a screen, from the root: `/`, `/?table=nodes&sort=-util`. */
export function serializeScreen(screen: Screen): string {
  const parameters = new URLSearchParams();
  const write = <T>(field: Field<T>, value: T) => {
    for (const text of field.serialize(value)) parameters.append(field.key, text);
  };
  write(tableField, screen.table);
  write(pictureField, screen.picture);
  if (screen.layout !== null) parameters.append(LAYOUT_KEY, serializeView(screen.layout));
  write(colorField, screen.color);
  write(sortField, screen.sort);
  write(queryField, screen.text);
  for (const name of FILTER_NAMES) write(filterFields[name], screen.filters[name]);
  write(selectionField, screen.selection);
  write(momentField, screen.at);
  const path = screen.view === INITIAL_SCREEN.view ? "/" : `/${screen.view}`;
  // A colon is legal in a query and ids are full of them: a link that can be read is worth two replacements.
  const query = parameters.toString().replaceAll("%3A", ":").replaceAll("%2F", "/");
  return query ? `${path}?${query}` : path;
}
