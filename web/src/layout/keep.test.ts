import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { UnitColumns } from "./attributes.ts";
import { BUILTIN_VIEWS } from "./builtin-views.ts";
import { DEFAULT_MARK, DEFAULT_VIEW, LAYOUT_KINDS, makeLayer, type View } from "./grammar.ts";
import { matchLayouts } from "./keep.ts";
import { keepUnits, labelOf, type PackedLayout, packUnits, type UnitLayout } from "./layout.ts";
import { findLayoutFault } from "./layout-faults.ts";
import { createRandom, makeNames } from "./synthetic-units.ts";

const SPACE = { width: 1200, height: 700 };

/** The workload of each GPU, `project/user/number`; null: free. */
type Held = readonly (string | null)[];

function columnsOf(held: Held): UnitColumns {
  const part = (at: number) => makeNames(held.map((workload) => workload?.split("/")[at] ?? null));
  return {
    rowCount: held.length,
    attributes: new Map([
      ["unit", makeNames(held.map((_, row) => `gpu-${row >> 3}:${row & 7}`))],
      ["node", makeNames(held.map((_, row) => `gpu-${row >> 3}`))],
      ["unit_state", makeNames(held.map((workload) => (workload === null ? "free" : "allocated")))],
      ["project", part(0)],
      ["user", part(1)],
      ["workload", makeNames(held)],
    ]),
  };
}

function pack(view: View, held: Held): PackedLayout {
  return packUnits({ view, columns: columnsOf(held), filtered: null, space: SPACE });
}

function keep(view: View, held: Held, former: PackedLayout): PackedLayout {
  const kept = keepUnits({ view, columns: columnsOf(held), filtered: null, space: SPACE }, former.packing);
  return kept ?? pack(view, held);
}

/** The workload ends, or another one starts on free GPUs. */
function change(held: Held, random: () => number): Held {
  const running = [...new Set(held.filter((workload) => workload !== null))];
  const free = held.flatMap((workload, row) => (workload === null ? [row] : []));
  if (free.length === 0 || (running.length > 0 && random() < 0.5)) {
    const ended = running[Math.floor(random() * running.length)];
    return held.map((workload) => (workload === ended ? null : workload));
  }
  const size = Math.min(free.length, [1, 1, 2, 4, 8, 16][Math.floor(random() * 6)] ?? 1);
  const user = Math.floor(random() * 12);
  const started = `p${user % 5}/u${user}/${Math.floor(random() * 1e9)}`;
  const rows = new Set(free.slice(0, size));
  return held.map((workload, row) => (rows.has(row) ? started : workload));
}

function fill(gpus: number, random: () => number): Held {
  let held: Held = new Array<string | null>(gpus).fill(null);
  while (held.filter((workload) => workload === null).length > gpus / 5) held = change(held, random);
  return held;
}

const countUnits = ({ groups }: UnitLayout, group: number) => groups.unitCount[group] ?? 0;

/** Places within the group around it. */
function placeWithin({ groups }: UnitLayout, group: number): string {
  const parent = groups.parent[group] ?? 0;
  const left = (groups.x[group] ?? 0) - (groups.x[parent] ?? 0);
  const top = (groups.y[group] ?? 0) - (groups.y[parent] ?? 0);
  return `${left.toFixed(3)},${top.toFixed(3)}`;
}

/** Groups that moved although neither they nor a sibling got or lost a unit. */
function listBystanders(before: UnitLayout, after: UnitLayout): readonly string[] {
  const former = matchLayouts(after, before);
  const then = matchLayouts(before, after);
  const isTouched = new Set<number>();
  former.forEach((match, group) => {
    if (match < 0 || countUnits(after, group) !== countUnits(before, match)) {
      isTouched.add(after.groups.parent[group] ?? 0);
    }
  });
  then.forEach((match, group) => {
    const parent = then[before.groups.parent[group] ?? 0] ?? -1;
    if (match < 0 && parent >= 0) isTouched.add(parent);
  });
  return [...former.keys()].flatMap((group) => {
    const match = former[group] ?? -1;
    if (group === 0 || match < 0 || isTouched.has(after.groups.parent[group] ?? 0)) return [];
    return placeWithin(after, group) === placeWithin(before, match) ? [] : [labelOf(after, group)];
  });
}

/** GPUs that moved and did not change hands. */
function countMoved(held: Held, next: Held, before: UnitLayout, after: UnitLayout): number {
  return held.filter(
    (workload, row) =>
      workload === next[row] &&
      Math.hypot((before.x[row] ?? 0) - (after.x[row] ?? 0), (before.y[row] ?? 0) - (after.y[row] ?? 0)) > 1e-3,
  ).length;
}

const [WHO_USES_WHAT] = BUILTIN_VIEWS.map(({ view }) => view);
const VIEWS: readonly View[] = [
  ...(WHO_USES_WHAT ? [WHO_USES_WHAT] : []),
  ...LAYOUT_KINDS.flatMap((layout) =>
    (["count", "uniform"] as const).map((size) => ({
      ...DEFAULT_VIEW,
      layers: [makeLayer("project", { layout, size }), makeLayer("workload", { layout: "pack" })],
      mark: { ...DEFAULT_MARK, layout },
    })),
  ),
  { ...DEFAULT_VIEW, layers: [makeLayer("node", { layout: "listX" })] },
  { ...DEFAULT_VIEW, layers: [] },
];

describe("places that are kept", () => {
  it("are the same when nothing changed", () => {
    const held = fill(200, createRandom(3));
    for (const view of VIEWS) {
      const packed = pack(view, held);
      const kept = keep(view, held, packed);
      expect(kept.layout).toEqual({ ...packed.layout, isKept: true });
      expect(kept.layout.looseness).toBeCloseTo(1);
    }
  });

  it("are legal, and a workload that starts or ends moves only its own groups and their neighbors", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 8, max: 160 }), fc.constantFrom(...VIEWS), (seed, gpus, view) => {
        const random = createRandom(seed);
        let held = fill(gpus, random);
        let packed = pack(view, held);
        for (let step = 0; step < 12; step += 1) {
          const next = change(held, random);
          const after = keep(view, next, packed);
          expect(findLayoutFault(after.layout, new Array<boolean>(gpus).fill(true))).toBeNull();
          if (after.layout.isKept) expect(listBystanders(packed.layout, after.layout)).toEqual([]);
          held = next;
          packed = after;
        }
      }),
    );
  });

  it("are kept for every single change of a cluster that is not tiny", () => {
    const random = createRandom(11);
    let held = fill(512, random);
    let packed = pack(WHO_USES_WHAT ?? DEFAULT_VIEW, held);
    for (let step = 0; step < 60; step += 1) {
      held = change(held, random);
      packed = keep(WHO_USES_WHAT ?? DEFAULT_VIEW, held, packed);
      expect(packed.layout.isKept).toBe(true);
    }
  });

  it("leave nearly all GPUs where they are, where packing from scratch moves most", () => {
    const random = createRandom(5);
    const view = WHO_USES_WHAT ?? DEFAULT_VIEW;
    let held = fill(1024, random);
    let kept = pack(view, held);
    let fresh = kept;
    let movedKept = 0;
    let movedFresh = 0;
    const steps = 40;
    for (let step = 0; step < steps; step += 1) {
      const next = change(held, random);
      const after = keep(view, next, kept);
      const packed = pack(view, next);
      movedKept += countMoved(held, next, kept.layout, after.layout);
      movedFresh += countMoved(held, next, fresh.layout, packed.layout);
      [held, kept, fresh] = [next, after, packed];
    }
    expect(movedKept / steps).toBeLessThan(0.05 * 1024);
    expect(movedKept).toBeLessThan(0.1 * movedFresh);
  });

  it("let a unit stay in its cell when another one leaves the group, and give the cell to the next newcomer", () => {
    const view = { ...DEFAULT_VIEW, layers: [makeLayer("project")] };
    const held: Held = ["a/u/1", "a/u/1", "a/u/1", "a/u/2", null, null];
    const packed = pack(view, held);
    const left = keep(view, ["a/u/1", null, "a/u/1", "a/u/2", null, null], packed);
    for (const row of [0, 2, 3])
      expect([left.layout.x[row], left.layout.y[row]]).toEqual([packed.layout.x[row], packed.layout.y[row]]);
    const back = keep(view, ["a/u/1", null, "a/u/1", "a/u/2", "a/u/3", null], left);
    expect([back.layout.x[4], back.layout.y[4]]).toEqual([packed.layout.x[1], packed.layout.y[1]]);
  });

  it("are given up where most groups are others", () => {
    const random = createRandom(2);
    const view = WHO_USES_WHAT ?? DEFAULT_VIEW;
    const packed = pack(view, fill(256, random));
    expect(keep(view, fill(256, createRandom(99)), packed).layout.isKept).toBe(false);
  });
});
