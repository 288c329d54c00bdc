// Arranges the small plots: by node and GPU index, by rank, or by cluster. Pure.

import type { DiagnosedUnit } from "../../api/generated.ts";
import type { MultiplesGroup } from "../../charts/multiples-layout.ts";
import type { Arrangement } from "../../state/diagnostics.ts";

/** GPUs are placed in the column of their index up to this index. */
const MAX_INDEX = 16;

const byName = new Intl.Collator("en", { numeric: true }).compare;

export function arrange(units: readonly DiagnosedUnit[], arrangement: Arrangement): readonly MultiplesGroup[] {
  const rows = units.map((_, row) => row);
  switch (arrangement) {
    case "node": {
      const nodes = group(units, rows, ({ node }) => node ?? "no node", byName);
      // One node has no columns to compare with others.
      if (nodes.length < 2) return nodes;
      return nodes.map(({ title, slots }) => ({ title, slots: placeByIndex(units, slots) }));
    }
    case "global_rank":
      return [{ title: "", slots: sortBy(units, rows, ({ global_rank }) => global_rank) }];
    case "local_rank":
      return group(
        units,
        sortBy(units, rows, ({ global_rank }) => global_rank),
        ({ local_rank }) => (local_rank === null ? "no rank" : `local rank ${local_rank}`),
        byName,
      );
    case "cluster":
      return group(
        units,
        rows,
        ({ cluster }) => (cluster === null ? "not compared" : `cluster ${cluster + 1}`),
        byName,
      );
  }
}

/** Whether the workload has the data for this arrangement. */
export function isAvailable(units: readonly DiagnosedUnit[], arrangement: Arrangement): boolean {
  if (arrangement === "global_rank") return units.some(({ global_rank }) => global_rank !== null);
  if (arrangement === "local_rank") return units.some(({ local_rank }) => local_rank !== null);
  return true;
}

function group(
  units: readonly DiagnosedUnit[],
  rows: readonly number[],
  titleOf: (unit: DiagnosedUnit) => string,
  compare: (a: string, b: string) => number,
): readonly { title: string; slots: readonly number[] }[] {
  const groups = new Map<string, number[]>();
  for (const row of rows) {
    const unit = units[row];
    if (!unit) continue;
    const title = titleOf(unit);
    const members = groups.get(title);
    if (members) members.push(row);
    else groups.set(title, [row]);
  }
  return [...groups].map(([title, slots]) => ({ title, slots })).sort((a, b) => compare(a.title, b.title));
}

/** Missing ranks last. */
function sortBy(
  units: readonly DiagnosedUnit[],
  rows: readonly number[],
  rankOf: (unit: DiagnosedUnit) => number | null,
): readonly number[] {
  const rank = (row: number) => {
    const unit = units[row];
    return (unit && rankOf(unit)) ?? Number.POSITIVE_INFINITY;
  };
  return [...rows].sort((a, b) => (rank(a) === rank(b) ? a - b : rank(a) - rank(b)));
}

function placeByIndex(units: readonly DiagnosedUnit[], rows: readonly number[]): readonly (number | null)[] {
  const indices = rows.map((row) => units[row]?.index ?? null);
  const knownIndices = indices.filter((index) => index !== null);
  const fits =
    knownIndices.length === rows.length &&
    Math.max(...knownIndices) < MAX_INDEX &&
    new Set(knownIndices).size === knownIndices.length;
  if (!fits) return rows;
  const slots = new Array<number | null>(Math.max(...knownIndices) + 1).fill(null);
  rows.forEach((row, at) => {
    slots[indices[at] ?? 0] = row;
  });
  return slots;
}

/** The same GPUs with fewer names: `node:*` where all GPUs of a node are included. */
export function shortenUnits(
  names: readonly string[],
  units: readonly Pick<DiagnosedUnit, "unit" | "node">[],
): readonly string[] {
  const remaining = new Set(names);
  const byNode = Map.groupBy(units, ({ node }) => node);
  const wholeNodes: string[] = [];
  for (const [node, members] of byNode) {
    if (node === null || members.length < 2 || !members.every(({ unit }) => remaining.has(unit))) continue;
    wholeNodes.push(`${node}:*`);
    for (const { unit } of members) remaining.delete(unit);
  }
  return [...wholeNodes, ...remaining];
}
