// Descriptions of a unit and of the whole picture, for tooltips and screen readers.

import { nameAt } from "../../../api/columns.ts";
import { formatCount, formatPlural, MISSING } from "../../../base/format.ts";
import type { Units } from "../../../data/units.ts";
import { attributeOf } from "../../../layout/grammar.ts";
import { labelOf, type UnitLayout } from "../../../layout/layout.ts";
import type { Attribute } from "../../../state/attributes.ts";
import type { Selection } from "../../../state/screen.ts";
import { stateWords, toUnitState } from "../words.ts";
import { describeValue } from "./color/value-words.ts";
import type { PictureModel } from "./use-picture.ts";

export interface UnitWords {
  readonly title: string;
  readonly state: string;
  readonly holder: string | null;
  readonly owner: string | null;
  readonly valueTitle: string;
  readonly value: string;
}

export function describeUnit(units: Units, row: number, color: Attribute): UnitWords {
  const { snapshot } = units;
  const read = (column: Parameters<typeof snapshot.names>[0]) => nameAt(snapshot.names(column), row);
  const state = toUnitState(read("unit_state"));
  const owner = [read("user"), read("project")].filter(Boolean).join(" · ");
  return {
    title: state === "requested" ? "Requested GPU" : (read("unit") ?? MISSING),
    state: stateWords(state),
    holder: read("workload_name") ?? read("workload"),
    owner: owner || null,
    valueTitle: color.title,
    value: describeValue(units, row, color),
  };
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
    `${formatPlural(layout.unitCount, "unit")} grouped by ${grouping}, colored by ${model.color.title}.`,
    `${states.join(", ")}.`,
    outer.length > 0 ? `Largest groups: ${outer.join("; ")}.` : "",
  ].join(" ");
}

function listOuterGroups({ groups }: UnitLayout): readonly number[] {
  const outer: number[] = [];
  for (let group = 1; group < groups.count && groups.depth[group] === 1; group += 1) outer.push(group);
  return outer.sort((a, b) => (groups.unitCount[b] ?? 0) - (groups.unitCount[a] ?? 0));
}
