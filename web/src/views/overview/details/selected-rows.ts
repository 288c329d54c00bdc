// The rows of a snapshot that a selection contains. Pure.

import type { UnitNameColumn } from "../../../api/snapshot.ts";
import type { Units } from "../../../data/units.ts";
import { decodeGroup, decodeUnits, type GroupScope, type Selection } from "../../../state/selection.ts";

/** In order. A name that nothing has selects nothing. */
export function listSelectedRows(units: Units, selection: Selection | null): readonly number[] {
  if (selection === null) return [];
  switch (selection.kind) {
    case "units":
      return listNamed(units, new Set(decodeUnits(selection.key)?.names));
    case "group": {
      const path = decodeGroup(selection.key);
      return path === null ? [] : listGroup(units, path.scope, path.steps);
    }
    default:
      return listGroup(units, "all", [{ attribute: selection.kind, name: selection.key }]);
  }
}

/** 1 for each row of the selection; null where nothing is selected. */
export function markSelectedRows(units: Units, selection: Selection | null): Uint8Array | null {
  if (selection === null) return null;
  const mask = new Uint8Array(units.snapshot.rowCount);
  for (const row of listSelectedRows(units, selection)) mask[row] = 1;
  return mask;
}

function listNamed({ snapshot }: Units, wanted: ReadonlySet<string>): readonly number[] {
  const { codes, names } = snapshot.names("unit");
  const isWanted = names.map((name) => name !== null && wanted.has(name));
  return filterRows(snapshot.rowCount, (row) => isWanted[codes[row] ?? 0] === true);
}

function listGroup(
  { snapshot }: Units,
  scope: GroupScope,
  steps: readonly { readonly attribute: string; readonly name: string | null }[],
): readonly number[] {
  const tests = steps.map(({ attribute, name }) => {
    const { codes, names } = snapshot.names(attribute as UnitNameColumn);
    return { codes, code: name === null ? 0 : names.indexOf(name, 1) };
  });
  if (tests.some(({ code }) => code < 0)) return [];
  const states = snapshot.names("unit_state");
  const requested = states.names.indexOf("requested");
  return filterRows(snapshot.rowCount, (row) => {
    if (scope !== "all" && (states.codes[row] === requested) !== (scope === "requested")) return false;
    return tests.every(({ codes, code }) => codes[row] === code);
  });
}

function filterRows(rowCount: number, keeps: (row: number) => boolean): readonly number[] {
  const rows: number[] = [];
  for (let row = 0; row < rowCount; row += 1) if (keeps(row)) rows.push(row);
  return rows;
}
