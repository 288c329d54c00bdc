// Describes a selection in a few words.

import { formatPlural } from "../../../base/format.ts";
import { decodeGroup, decodeUnits, type Selection } from "../../../state/selection.ts";
import { toUnitState, UNIT_STATE_WORDS } from "../words.ts";

export function describeSelection({ kind, key }: Selection): string {
  if (kind === "units") return formatPlural(decodeUnits(key)?.names.length ?? 0, "selected unit");
  const group = kind === "group" ? decodeGroup(key) : null;
  if (group === null) return `${kind} ${key}`;
  const state = group.steps.find(({ attribute }) => attribute === "unit_state")?.name ?? null;
  if (state !== null && group.steps.every(({ attribute, name }) => name === null || attribute === "unit_state")) {
    return `${UNIT_STATE_WORDS[toUnitState(state)]} units`; // of nobody: that they have no project goes without saying
  }
  return group.steps.map(({ attribute, name }) => name ?? `no ${attribute.replaceAll("_", " ")}`).join(" › ");
}
