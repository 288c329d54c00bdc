// A selection in a few words.

import { formatPlural } from "../../../base/format.ts";
import { decodeGroup, decodeUnits, type Selection } from "../../../state/selection.ts";

export function describeSelection({ kind, key }: Selection): string {
  if (kind === "units") return formatPlural(decodeUnits(key)?.names.length ?? 0, "selected unit");
  const group = kind === "group" ? decodeGroup(key) : null;
  if (group === null) return `${kind} ${key}`;
  return group.steps.map(({ attribute, name }) => name ?? `no ${attribute.replaceAll("_", " ")}`).join(" › ");
}
