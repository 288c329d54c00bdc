// Animates the boxes of groups from one layout to the next, so that frames and names move with their units. Pure except
// for its arrays, which every frame overwrites.

import { matchLayouts } from "../../../layout/keep.ts";
import type { UnitLayout } from "../../../layout/layout.ts";

/** If fewer than this share of the groups existed before, the new ones fade in as units arrive. */
const FEWEST_MATCHED = 0.5;

export class GroupFlight {
  /** The new layout with the boxes where they are now. */
  readonly layout: UnitLayout;
  readonly #to: UnitLayout;
  readonly #x: Float32Array;
  readonly #y: Float32Array;
  readonly #width: Float32Array;
  readonly #height: Float32Array;

  constructor(from: UnitLayout, to: UnitLayout, matches: Int32Array) {
    const start = (now: Float32Array, then: Float32Array) =>
      now.map((value, group) => ((matches[group] ?? -1) < 0 ? value : (then[matches[group] ?? 0] ?? 0)));
    this.#to = to;
    this.#x = start(to.groups.x, from.groups.x);
    this.#y = start(to.groups.y, from.groups.y);
    this.#width = start(to.groups.width, from.groups.width);
    this.#height = start(to.groups.height, from.groups.height);
    const { x, y, width, height } = to.groups;
    const boxes = { x: x.slice(), y: y.slice(), width: width.slice(), height: height.slice() };
    this.layout = { ...to, groups: { ...to.groups, ...boxes } };
    this.moveTo(0);
  }

  /** 0: as it was; 1: as it will be. */
  moveTo(progress: number): void {
    const { groups } = this.layout;
    const to = this.#to.groups;
    for (let group = 0; group < groups.count; group += 1) {
      groups.x[group] = mix(this.#x[group] ?? 0, to.x[group] ?? 0, progress);
      groups.y[group] = mix(this.#y[group] ?? 0, to.y[group] ?? 0, progress);
      groups.width[group] = mix(this.#width[group] ?? 0, to.width[group] ?? 0, progress);
      groups.height[group] = mix(this.#height[group] ?? 0, to.height[group] ?? 0, progress);
    }
  }
}

function mix(from: number, to: number, ratio: number): number {
  return from + (to - from) * ratio;
}

/** Null where the groups are others than before: there is nothing to fly. */
export function startGroupFlight(from: UnitLayout, to: UnitLayout): GroupFlight | null {
  const matches = matchLayouts(to, from);
  let matched = 0;
  for (const match of matches) if (match >= 0) matched += 1;
  return matched < FEWEST_MATCHED * matches.length ? null : new GroupFlight(from, to, matches);
}
