// A unit of the picture, and the picture as a whole, in words: for the tooltip and for those who hear the page.

import { nameAt, numberAt } from "../../../api/columns.ts";
import { formatCount, formatPlural, formatQuantity, MISSING } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import type { Units } from "../../../data/units.ts";
import { attributeOf } from "../../../layout/grammar.ts";
import { labelOf, type UnitLayout } from "../../../layout/layout.ts";
import type { ColorName, Selection } from "../../../state/screen.ts";
import { stateWords, toUnitState } from "../words.ts";
import { COLOR_CHOICES, readQuantity, titleOf } from "./color/color-choices.ts";
import type { PictureModel } from "./use-picture.ts";

export interface UnitWords {
  readonly title: string;
  readonly state: string;
  readonly holder: string | null;
  readonly owner: string | null;
  readonly valueTitle: string;
  readonly value: string;
}

export function describeUnit(units: Units, row: number, color: ColorName): UnitWords {
  const { snapshot } = units;
  const read = (column: Parameters<typeof snapshot.names>[0]) => nameAt(snapshot.names(column), row);
  const state = toUnitState(read("unit_state"));
  const owner = [read("user"), read("project")].filter(Boolean).join(" · ");
  return {
    title: state === "requested" ? "Requested GPU" : (read("unit") ?? MISSING),
    state: stateWords(state),
    holder: read("workload_name") ?? read("workload"),
    owner: owner || null,
    valueTitle: COLOR_CHOICES[color].title,
    value: describeValue(units, row, color),
  };
}

function describeValue(units: Units, row: number, color: ColorName): string {
  const choice = COLOR_CHOICES[color];
  if (choice.kind === "category") return titleOf(units, choice)(row) ?? MISSING;
  const values = readQuantity(units, color);
  const value = values && numberAt(values, row);
  if (value === null) return MISSING;
  return choice.unit === "seconds" ? formatDuration(value) : formatQuantity(value, choice.unit);
}

/** Who holds a unit is what one wants to know of it; of one that nobody holds, the unit itself. */
export function selectionOf({ snapshot }: Units, row: number): Selection | null {
  const workload = nameAt(snapshot.names("workload"), row);
  if (workload !== null) return { kind: "workload", key: workload };
  const unit = nameAt(snapshot.names("unit"), row);
  return unit === null ? null : { kind: "unit", key: unit };
}

/** Rows shift when units come and go; names stay. */
export function findUnit({ snapshot }: Units, unit: string): number | null {
  const { codes, names } = snapshot.names("unit");
  const row = codes.indexOf(names.indexOf(unit));
  return row < 0 ? null : row;
}

/** The rows that are selected. */
export function listSelected({ snapshot }: Units, selection: Selection | null): readonly number[] {
  if (selection === null) return [];
  const { codes, names } = snapshot.names(selection.kind);
  const wanted = names.indexOf(selection.key);
  const rows: number[] = [];
  if (wanted <= 0) return rows;
  codes.forEach((code, row) => {
    if (code === wanted) rows.push(row);
  });
  return rows;
}

export function describePicture(model: PictureModel, layout: UnitLayout): string {
  const { view } = model.arrangement;
  const grouping = view.layers.map((layer) => attributeOf(layer).replaceAll("_", " ")).join(", then ");
  const states = Object.entries(model.coloring.states)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${formatCount(count)} ${state}`);
  const outer = listOuterGroups(layout)
    .slice(0, 3)
    .map((group) => `${labelOf(layout, group)} with ${formatCount(layout.groups.unitCount[group] ?? 0)}`);
  return [
    `${formatPlural(layout.unitCount, "unit")} grouped by ${grouping}, coloured by ${COLOR_CHOICES[model.color].title}.`,
    `${states.join(", ")}.`,
    outer.length > 0 ? `Largest groups: ${outer.join("; ")}.` : "",
  ].join(" ");
}

function listOuterGroups({ groups }: UnitLayout): readonly number[] {
  const outer: number[] = [];
  for (let group = 1; group < groups.count && groups.depth[group] === 1; group += 1) outer.push(group);
  return outer.sort((a, b) => (groups.unitCount[b] ?? 0) - (groups.unitCount[a] ?? 0));
}
