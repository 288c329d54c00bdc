// Invariants of a layout, checked on the result alone: used by tests and the benchmark, not by the page.

import type { UnitLayout } from "./layout.ts";

/** Float32 places of pictures up to some ten thousand units wide. */
const TOLERANCE = 0.01;

/** The first fault found, in words; null where there is none. `shown`: the rows that must be laid out. */
export function findLayoutFault(layout: UnitLayout, shown: readonly boolean[]): string | null {
  return findLost(layout, shown) ?? findOutside(layout) ?? findOverlap(layout) ?? findSiblingOverlap(layout);
}

function findLost({ size, x, y, unitCount, groups }: UnitLayout, shown: readonly boolean[]): string | null {
  let count = 0;
  for (let row = 0; row < size.length; row += 1) {
    if (!Number.isFinite(x[row]) || !Number.isFinite(y[row])) return `unit ${row} is nowhere`;
    if ((size[row] === 1) !== shown[row]) return `unit ${row} has size ${size[row]}`;
    count += shown[row] ? 1 : 0;
  }
  if (size.length !== shown.length || count !== unitCount || groups.unitCount[0] !== count) return "units are lost";
  const inChildren = new Uint32Array(groups.count);
  groups.parent.forEach((parent, group) => {
    if (group > 0) inChildren[parent] = (inChildren[parent] ?? 0) + (groups.unitCount[group] ?? 0);
  });
  const bad = inChildren.findIndex((units, group) => units !== 0 && units !== groups.unitCount[group]);
  return bad < 0 ? null : `group ${bad} has other units than its children`;
}

function findOutside({ x, y, size, group, groups }: UnitLayout): string | null {
  const isInside = (outer: number, left: number, top: number, width: number, height: number) =>
    left >= (groups.x[outer] ?? 0) - TOLERANCE &&
    top >= (groups.y[outer] ?? 0) - TOLERANCE &&
    left + width <= (groups.x[outer] ?? 0) + (groups.width[outer] ?? 0) + TOLERANCE &&
    top + height <= (groups.y[outer] ?? 0) + (groups.height[outer] ?? 0) + TOLERANCE;
  for (let box = 1; box < groups.count; box += 1) {
    const parent = groups.parent[box] ?? 0;
    const label = (groups.labelHeight[groups.depth[parent] ?? 0] ?? 0) * (parent === 0 ? 0 : 1);
    const top = (groups.y[box] ?? 0) - label;
    const height = (groups.height[box] ?? 0) + label;
    if (!isInside(parent, groups.x[box] ?? 0, top, groups.width[box] ?? 0, height)) return `group ${box} is outside`;
  }
  for (let row = 0; row < size.length; row += 1) {
    if (size[row] === 1 && !isInside(group[row] ?? 0, x[row] ?? 0, y[row] ?? 0, 1, 1)) return `unit ${row} is outside`;
  }
  return null;
}

/** A unit is of side 1, so that those it may overlap begin in one of nine cells of side 1. */
function findOverlap({ x, y, size, bounds }: UnitLayout): string | null {
  const columns = Math.ceil(bounds.width) + 2;
  const inCell = new Map<number, number[]>();
  for (let row = 0; row < size.length; row += 1) {
    if (size[row] !== 1) continue;
    const column = Math.floor(x[row] ?? 0) + 1;
    const line = Math.floor(y[row] ?? 0) + 1;
    for (let cell = 0; cell < 9; cell += 1) {
      const near = (line + Math.floor(cell / 3) - 1) * columns + column + (cell % 3) - 1;
      for (const other of inCell.get(near) ?? []) {
        const isApart =
          Math.abs((x[row] ?? 0) - (x[other] ?? 0)) >= 1 - TOLERANCE ||
          Math.abs((y[row] ?? 0) - (y[other] ?? 0)) >= 1 - TOLERANCE;
        if (!isApart) return `units ${other} and ${row} overlap`;
      }
    }
    const cellIndex = line * columns + column;
    const occupant = inCell.get(cellIndex);
    if (occupant === undefined) inCell.set(cellIndex, [row]);
    else occupant.push(row);
  }
  return null;
}

/** Sweeps over the siblings of each group from left to right. */
function findSiblingOverlap({ groups }: UnitLayout): string | null {
  const children = new Map<number, number[]>();
  for (let box = 1; box < groups.count; box += 1) {
    const parent = groups.parent[box] ?? 0;
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [box]);
    else siblings.push(box);
  }
  const right = (box: number) => (groups.x[box] ?? 0) + (groups.width[box] ?? 0);
  const bottom = (box: number) => (groups.y[box] ?? 0) + (groups.height[box] ?? 0);
  for (const siblings of children.values()) {
    siblings.sort((a, b) => (groups.x[a] ?? 0) - (groups.x[b] ?? 0));
    let active: number[] = [];
    for (const box of siblings) {
      active = active.filter((other) => right(other) > (groups.x[box] ?? 0) + TOLERANCE);
      const hit = active.find(
        (other) => (groups.y[other] ?? 0) < bottom(box) - TOLERANCE && (groups.y[box] ?? 0) < bottom(other) - TOLERANCE,
      );
      if (hit !== undefined) return `groups ${hit} and ${box} overlap`;
      active.push(box);
    }
  }
  return null;
}
