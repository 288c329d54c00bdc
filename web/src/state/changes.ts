// Changes of the screen as pure functions: a screen in, a screen out. Who calls them and what history does is elsewhere.

import type { View } from "../layout/grammar.ts";
import { uniqueNames } from "./fields.ts";
import { type Look, withLook } from "./look.ts";
import { isMine, isSameView, type PictureRef } from "./picture.ts";
import {
  type ColorName,
  type FilterName,
  INITIAL_SCREEN,
  isColumn,
  keepStates,
  type Screen,
  type Selection,
  type Sort,
  type TableName,
  type ViewName,
} from "./screen.ts";

export type ScreenChange = (screen: Screen) => Screen;

export const openView =
  (view: ViewName): ScreenChange =>
  (screen) => ({ ...screen, view });

/** States and columns that the other table does not know are given up; all else stays. */
export const showTable =
  (table: TableName): ScreenChange =>
  (screen) => ({
    ...screen,
    table,
    sort: screen.sort && isColumn(table, screen.sort.column) ? screen.sort : null,
    filters: { ...screen.filters, state: keepStates(screen.filters.state, table) },
  });

/** Another arrangement shows its own colors. A view that only this browser knows is written out, so that the link can be shared. */
export const openPicture =
  (picture: PictureRef, view: View, look: Look): ScreenChange =>
  (screen) =>
    withLook({ ...screen, picture, layout: isMine(picture) ? view : null }, look);

/** `saved`: the layout of the picture; where it is the same again, the link is as short as before. */
export const editLayout =
  (picture: PictureRef | null, view: View, saved: View | null): ScreenChange =>
  (screen) => ({
    ...screen,
    picture,
    layout: saved !== null && !isMine(picture) && isSameView(view, saved) ? null : view,
  });

export const colorBy =
  (color: ColorName | null): ScreenChange =>
  (screen) => ({ ...screen, color });

export const sortBy =
  (sort: Sort | null): ScreenChange =>
  (screen) => ({ ...screen, sort });

export const searchFor =
  (text: string): ScreenChange =>
  (screen) => ({ ...screen, text });

export const setFilter =
  (name: FilterName, values: readonly string[]): ScreenChange =>
  (screen) => ({ ...screen, filters: { ...screen.filters, [name]: uniqueNames(values) } });

export const toggleFilter =
  (name: FilterName, value: string): ScreenChange =>
  (screen) => {
    const values = screen.filters[name];
    const next = values.includes(value) ? values.filter((other) => other !== value) : [...values, value];
    return setFilter(name, next)(screen);
  };

export const clearFilters: ScreenChange = (screen) => ({ ...screen, text: "", filters: INITIAL_SCREEN.filters });

export const select =
  (selection: Selection | null): ScreenChange =>
  (screen) => ({ ...screen, selection });
