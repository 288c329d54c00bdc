// Changes of the screen as pure functions from screen to screen. Callers and browser history are elsewhere.

import type { View } from "../layout/grammar.ts";
import type { AttributeName, NameAttributeName } from "./attributes.ts";
import { type ColorSettings, DEFAULT_COLORS } from "./color.ts";
import { diagnose } from "./diagnostics.ts";
import { type Look, withLook } from "./look.ts";
import { isMine, isSameView, type PictureRef } from "./picture.ts";
import type { Range } from "./range.ts";
import {
  type FacetName,
  facetAttribute,
  isColumn,
  type Screen,
  type Selection,
  type Sort,
  type TableName,
  type ViewName,
} from "./screen.ts";
import { decodeGroup } from "./selection.ts";
import type { RulesPage } from "./violations.ts";
import { type Clause, findNames, replaceClause, type WantedName, withNames, withRange } from "./where.ts";
import type { PictureWindow } from "./window.ts";

export type ScreenChange = (screen: Screen) => Screen;

/**
 * The selection carries over to the other view: a workload is diagnosed, a user or a project filters lists. Without a
 * selection the other view keeps its state.
 */
export const openView =
  (view: ViewName): ScreenChange =>
  (screen) => {
    const { selection, diagnostics } = screen;
    const isOther = selection?.kind === "workload" && selection.key !== diagnostics.workload;
    if (view === "diagnostics" && isOther) return diagnose(selection.key)(screen);
    return narrowToOwner({ ...screen, view }, findOwner(selection));
  };

interface Owner {
  readonly user: string | null;
  readonly project: string | null;
}

/** The user or project of the selected group; null: none. */
function findOwner(selection: Selection | null): Owner | null {
  const steps = (selection?.kind === "group" ? decodeGroup(selection.key)?.steps : null) ?? [];
  const find = (wanted: string) => steps.find(({ attribute }) => attribute === wanted)?.name ?? null;
  const owner = { user: find("user"), project: find("project") };
  return owner.user === null && owner.project === null ? null : owner;
}

/** A user is more specific than a project. Names with spaces cannot be searched for. */
function narrowToOwner(screen: Screen, owner: Owner | null): Screen {
  if (owner === null) return screen;
  const { user, project } = owner;
  if (screen.view === "rules") {
    const people = user !== null ? { users: [user], projects: [] } : { users: [], projects: project ? [project] : [] };
    return { ...screen, rulesPage: { ...screen.rulesPage, ...people } };
  }
  const text = user !== null ? `user=${user}` : `project=${project}`;
  if (/\s/.test(text)) return screen;
  if (screen.view === "scheduling") return { ...screen, scheduling: { ...screen.scheduling, text } };
  return screen.view === "runs" && user !== null ? { ...screen, runs: { ...screen.runs, text } } : screen;
}

/** A sort column that the other table lacks is dropped; everything else stays. */
export const showTable =
  (table: TableName): ScreenChange =>
  (screen) => ({
    ...screen,
    table,
    sort: screen.sort && isColumn(table, screen.sort.column) ? screen.sort : null,
  });

/** Another arrangement has its own colors. A view that is stored only in this browser is written out, so that the link can be shared. */
export const openPicture =
  (picture: PictureRef, view: View, look: Look): ScreenChange =>
  (screen) =>
    withLook({ ...screen, picture, layout: isMine(picture) ? view : null, window: null }, look);

/** The visible part of the picture; null: all of it. */
export const showWindow =
  (window: PictureWindow | null): ScreenChange =>
  (screen) => ({ ...screen, window });

/** `saved`: the layout of the picture; if the edited layout equals it, the link stays short. */
export const editLayout =
  (picture: PictureRef | null, view: View, saved: View | null): ScreenChange =>
  (screen) => ({
    ...screen,
    picture,
    window: null,
    layout: saved !== null && !isMine(picture) && isSameView(view, saved) ? null : view,
  });

/** Limits and scale belong to one attribute; the scheme is the reader's and stays. */
export const colorBy =
  (color: AttributeName | null): ScreenChange =>
  (screen) => ({
    ...screen,
    color,
    colors: { ...screen.colors, min: null, max: null, scale: DEFAULT_COLORS.scale },
  });

export const setColors =
  (changes: Partial<ColorSettings>): ScreenChange =>
  (screen) => ({ ...screen, colors: { ...screen.colors, ...changes } });

export const sortBy =
  (sort: Sort | null): ScreenChange =>
  (screen) => ({ ...screen, sort });

export const searchFor =
  (text: string): ScreenChange =>
  (screen) => ({ ...screen, text });

export const setNames =
  (attribute: NameAttributeName, names: readonly WantedName[]): ScreenChange =>
  (screen) => ({ ...screen, where: withNames(screen.where, attribute, names) });

export const toggleName =
  (attribute: NameAttributeName, name: WantedName): ScreenChange =>
  (screen) => {
    const names = findNames(screen.where, attribute);
    const next = names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
    return setNames(attribute, next)(screen);
  };

export const setRange =
  (attribute: AttributeName, range: Range | null): ScreenChange =>
  (screen) => ({ ...screen, where: withRange(screen.where, attribute, range) });

/** Past the end: adds a clause; null: removes it. */
export const setClause =
  (at: number, clause: Clause | null): ScreenChange =>
  (screen) => ({ ...screen, where: replaceClause(screen.where, at, clause) });

export const setFilter =
  (name: FacetName, values: readonly string[]): ScreenChange =>
  (screen) =>
    setNames(facetAttribute(name, screen.table), values)(screen);

export const toggleFilter =
  (name: FacetName, value: string): ScreenChange =>
  (screen) =>
    toggleName(facetAttribute(name, screen.table), value)(screen);

export const clearFilters: ScreenChange = (screen) => ({
  ...screen,
  text: "",
  where: [],
  within: null,
});

/** Toggles whether the picture shows a rule. */
export const toggleRule =
  (key: string): ScreenChange =>
  (screen) => {
    const { hiddenRules } = screen;
    const isHidden = hiddenRules.includes(key);
    return {
      ...screen,
      hiddenRules: isHidden ? hiddenRules.filter((other) => other !== key) : [...hiddenRules, key].sort(),
    };
  };

export const select =
  (selection: Selection | null): ScreenChange =>
  (screen) => ({ ...screen, selection });

/** Shows only these units, as picture or table; null: all. */
export const showWithin =
  (within: Selection | null): ScreenChange =>
  (screen) => ({ ...screen, within });

export const changeRulesPage =
  (changes: Partial<RulesPage>): ScreenChange =>
  (screen) => ({ ...screen, rulesPage: { ...screen.rulesPage, ...changes } });

/** Shows the violations of one rule. */
export const openRule =
  (rule: string): ScreenChange =>
  (screen) => ({
    ...screen,
    view: "rules",
    rulesPage: { ...screen.rulesPage, shows: "violations", rules: [rule], severities: [], state: "all", text: "" },
  });

/** A node as a whole, in the overview. */
export const openNode =
  (node: string): ScreenChange =>
  (screen) => ({ ...screen, view: "overview", table: "picture", selection: { kind: "node", key: node } });

/** Selects a workload with a rule that it broke. */
/** Selects the node of a violation by a node or one of its GPUs. */
const NODE = "node:";

export const selectViolation =
  (workload: string, rule: string): ScreenChange =>
  (screen) => ({
    ...screen,
    selection: workload.startsWith(NODE)
      ? { kind: "node", key: workload.slice(NODE.length) }
      : { kind: "workload", key: workload },
    rulesPage: { ...screen.rulesPage, rule },
  });
