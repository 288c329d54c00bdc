// The screen, as a link describes it: view, picture or table with its order, filters, selection. One versioned schema;
// parse and serialize are inverse, defaults are omitted, and an invalid link never breaks the page.

import { serializeView, type View } from "../layout/grammar.ts";
import { type AccessTable, INITIAL_ACCESS, parseAccess, writeAccess } from "./access.ts";
import { type AttributeName, findAttribute, type NameAttributeName } from "./attributes.ts";
import { type ColorSettings, colorField, DEFAULT_COLORS, parseColors, writeColors } from "./color.ts";
import { type DiagnosticsPage, INITIAL_DIAGNOSTICS, parseDiagnostics, writeDiagnostics } from "./diagnostics.ts";
import { choiceField, type Field, textField } from "./fields.ts";
import { type JobRef, parseJobPath, writeJobPath } from "./job.ts";
import { INITIAL_PARALLEL, type ParallelPage, parseParallel, writeParallel } from "./parallel.ts";
import { LAYOUT_KEY, type PictureRef, parseLayout, pictureField } from "./picture.ts";
import { hiddenRulesField } from "./rules.ts";
import { INITIAL_RUNS, parseRuns, type RunsPage, writeRuns } from "./runs.ts";
import { INITIAL_SCHEDULING, parseScheduling, type SchedulingPage, writeScheduling } from "./scheduling.ts";
import { decodeUnits, type Selection, selectionField } from "./selection.ts";
import { type Moment, momentField } from "./time.ts";
import { INITIAL_USAGE, parseUsage, type UsagePage, writeUsage } from "./usage.ts";
import { INITIAL_RULES_PAGE, parseRulesPage, type RulesPage, writeRulesPage } from "./violations.ts";
import { parseWhere, serializeWhere, WHERE_KEY, type Where, withNames } from "./where.ts";
import { type PictureWindow, windowField } from "./window.ts";

/** Written as `v` from version 2 on; links without it are of version 1. */
export const SCREEN_VERSION = 1;

export const VIEW_NAMES = [
  "overview",
  "rules",
  "diagnostics",
  "parallel",
  "scheduling",
  "runs",
  "usage",
  "job",
  "access",
] as const;
export type ViewName = (typeof VIEW_NAMES)[number];

/** The picture has the rows of the table of units, drawn. */
export const TABLE_NAMES = ["picture", "workloads", "units", "nodes"] as const;
export type TableName = (typeof TABLE_NAMES)[number];

const UNIT_ROWS = {
  columns: ["unit", "partition", "type", "util", "power", "memory", "temperature", "user", "workload", "project"],
  state: "unit_state",
} as const;

/** The columns each table can be sorted by, and the attribute that is the state of its rows. */
export const TABLES = {
  picture: UNIT_ROWS,
  workloads: {
    columns: ["workload", "user", "project", "partition", "gpus", "util", "power", "memory", "waited", "running"],
    state: "workload_state",
  },
  units: UNIT_ROWS,
  nodes: {
    columns: ["node", "state", "partition", "type", "gpus", "util", "power", "memory", "rack", "driver"],
    state: "node_state",
  },
} as const satisfies Record<TableName, { columns: readonly string[]; state: NameAttributeName }>;

export type TableColumn<T extends TableName = TableName> = (typeof TABLES)[T]["columns"][number];

export interface Sort {
  readonly column: string;
  readonly descending: boolean;
}

/** The facets; `state` is a different attribute in each table. */
export const FACET_NAMES = ["state", "partition", "project", "user"] as const;
export type FacetName = (typeof FACET_NAMES)[number];

export function facetAttribute(name: FacetName, table: TableName): NameAttributeName {
  return name === "state" ? TABLES[table].state : name;
}

export type { Selection, SelectionKind } from "./selection.ts";

export interface Screen {
  readonly view: ViewName;
  readonly table: TableName;
  /** Null: the start view. */
  readonly picture: PictureRef | null;
  /** The layout as it was edited; null: that of the picture. */
  readonly layout: View | null;
  /** The visible part of the picture; null: all of it. */
  readonly window: PictureWindow | null;
  /** Null: the default color of the arrangement. */
  readonly color: AttributeName | null;
  readonly colors: ColorSettings;
  /** Null: the table's own order. */
  readonly sort: Sort | null;
  readonly text: string;
  readonly where: Where;
  readonly selection: Selection | null;
  /** Only these units are shown; null: all. */
  readonly within: Selection | null;
  /** Keys of rules that the picture does not show. */
  readonly hiddenRules: readonly string[];
  readonly rulesPage: RulesPage;
  readonly diagnostics: DiagnosticsPage;
  readonly parallel: ParallelPage;
  readonly scheduling: SchedulingPage;
  readonly runs: RunsPage;
  readonly usage: UsagePage;
  /** Of the view of a job only; null: none was named. */
  readonly job: JobRef | null;
  readonly access: AccessTable;
  /** The minute that the screen shows; null: the present. */
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

const selectedField = selectionField("select");
const withinField = selectionField("within");

const tableField = choiceField("table", TABLE_NAMES, "picture");
const queryField = textField("q");

export const INITIAL_SCREEN: Screen = {
  view: "overview",
  table: tableField.initial,
  picture: pictureField.initial,
  layout: null,
  window: windowField.initial,
  color: null,
  colors: DEFAULT_COLORS,
  sort: null,
  text: "",
  where: [],
  selection: null,
  within: null,
  hiddenRules: hiddenRulesField.initial,
  rulesPage: INITIAL_RULES_PAGE,
  diagnostics: INITIAL_DIAGNOSTICS,
  parallel: INITIAL_PARALLEL,
  scheduling: INITIAL_SCHEDULING,
  runs: INITIAL_RUNS,
  usage: INITIAL_USAGE,
  job: null,
  access: INITIAL_ACCESS,
  at: null,
};

export interface ParsedScreen {
  readonly screen: Screen;
  /** What was ignored in the link, one sentence each. */
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
    notices.push(`The link says ${field.key}=${texts.join(", ")}, which is invalid; it was ignored.`);
    return field.initial;
  };

  if (Number(parameters.get("v") ?? "1") > SCREEN_VERSION) {
    notices.push("The link was made by a newer version of ClusterScape; unknown settings were ignored.");
  }
  const table = read(tableField);
  const screen: Screen = {
    view: parseView(pathname, views, notices),
    table,
    picture: read(pictureField),
    layout: parseLayout(parameters.get(LAYOUT_KEY), notices),
    window: read(windowField),
    color: read(colorField),
    colors: parseColors(read),
    sort: checkSort(read(sortField), table, notices),
    text: read(queryField),
    where: readWhere(parameters, table, notices),
    selection: checkSelection(read(selectedField), notices),
    within: read(withinField),
    hiddenRules: read(hiddenRulesField),
    rulesPage: parseRulesPage(read),
    diagnostics: parseDiagnostics(read),
    parallel: parseParallel(read),
    scheduling: parseScheduling(read),
    runs: parseRuns(read),
    usage: parseUsage(read),
    job: views.includes("job") ? (parseJobPath(pathname) ?? null) : null,
    access: parseAccess(read),
    at: read(momentField),
  };
  return { screen, notices };
}

function parseView(pathname: string, views: readonly ViewName[], notices: string[]): ViewName {
  const name = pathname.replace(/^\/+|\/+$/g, "");
  if (name === "") return INITIAL_SCREEN.view;
  if (views.includes("job") && parseJobPath(pathname) !== undefined) return "job";
  const view = views.find((candidate) => candidate === name && candidate !== "job");
  if (view === undefined) notices.push(`There is no view named ${name}; the overview is shown.`);
  return view ?? INITIAL_SCREEN.view;
}

function checkSelection(selection: Selection | null, notices: string[]): Selection | null {
  const leftOut = selection?.kind === "units" ? (decodeUnits(selection.key)?.leftOut ?? 0) : 0;
  if (leftOut > 0) notices.push(`The link holds only some of the selected units; ${leftOut} more did not fit.`);
  return selection;
}

function checkSort(sort: Sort | null, table: TableName, notices: string[]): Sort | null {
  if (sort === null || isColumn(table, sort.column)) return sort;
  notices.push(`The link sorts by ${sort.column}, which the table of ${table} does not have; it was ignored.`);
  return null;
}

export function isColumn(table: TableName, column: string): boolean {
  return (TABLES[table].columns as readonly string[]).includes(column);
}

/** Older links name the values of a facet under its own key. */
function readWhere(parameters: URLSearchParams, table: TableName, notices: string[]): Where {
  let where = parseWhere(parameters.getAll(WHERE_KEY), notices);
  for (const name of FACET_NAMES) {
    const attribute = findAttribute(facetAttribute(name, table));
    const texts = parameters.getAll(name).filter((text) => text !== "");
    if (attribute?.kind !== "name" || texts.length === 0) continue;
    const valid = texts.filter((text) => attribute.values?.includes(text) ?? true);
    const unknown = texts.filter((text) => !valid.includes(text));
    if (unknown.length > 0) notices.push(`The table of ${table} has no state ${unknown.join(", ")}; it was ignored.`);
    where = withNames(where, attribute.name, valid);
  }
  return where;
}

function writePath({ view, job }: Screen): string {
  if (view === "job") return writeJobPath(job);
  return view === INITIAL_SCREEN.view ? "/" : `/${view}`;
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
  write(windowField, screen.window);
  write(colorField, screen.color);
  writeColors(screen.colors, write);
  write(sortField, screen.sort);
  write(queryField, screen.text);
  for (const text of serializeWhere(screen.where)) parameters.append(WHERE_KEY, text);
  write(selectedField, screen.selection);
  write(withinField, screen.within);
  write(hiddenRulesField, screen.hiddenRules);
  writeRulesPage(screen.rulesPage, write);
  writeDiagnostics(screen.diagnostics, write);
  writeParallel(screen.parallel, write);
  writeScheduling(screen.scheduling, write);
  writeRuns(screen.runs, write);
  writeUsage(screen.usage, write);
  writeAccess(screen.access, write);
  write(momentField, screen.at);
  const path = writePath(screen);
  // These characters are legal in a query; unescaped, ids and conditions stay readable.
  const query = parameters.toString().replaceAll(/%(?:3A|2F|2C|3D|21|7E)/g, decodeURIComponent);
  return query ? `${path}?${query}` : path;
}
