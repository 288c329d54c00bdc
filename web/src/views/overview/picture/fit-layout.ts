// A layout whose names fit above their groups. Pure; the worker calls it.

import type { UnitColumns } from "../../../layout/attributes.ts";
import type { View } from "../../../layout/grammar.ts";
import { layoutUnits, type UnitLayout } from "../../../layout/layout.ts";
import { fitScale, type Size } from "./camera.ts";

export interface LayoutRequest {
  readonly view: View;
  readonly columns: UnitColumns;
  readonly space: Size;
  /** 1 for each row that the filters leave out; null where none is, or where those are to stay. */
  readonly filtered?: Uint8Array | null;
}

/** Page pixels that a name above a group needs. */
const LABEL_PX = [20, 17] as const;
/** Bars are too narrow for names that lie: they get room for names that stand. */
const STANDING_LABEL_PX = 76;
/** Groups that are narrower than this on average cannot show a name when seen whole. */
const NARROWEST_LABELED_PX = 44;

const WORDS = {
  missing: "none",
  missingOf: new Map([
    ["workload", "unused"],
    ["user", "unused"],
    ["project", "unused"],
    ["resource_type", "any"],
  ]),
  other: "other",
};

/**
 * Names have a size in pixels, units have not: the first layout tells how large a unit will be on the page, the second
 * one keeps as much room for names as they need at that size.
 */
export function layoutToFit({ view, columns, space, filtered = null }: LayoutRequest): UnitLayout {
  const input = { view, columns, space, filtered };
  const first = layoutUnits({ ...input, options: { words: WORDS } });
  const scale = fitScale(first.bounds, space);
  const labelHeights = view.layers.map((layer, index) => {
    const isNarrow = meanWidth(first, index + 1) * scale < NARROWEST_LABELED_PX;
    if (isNarrow && layer.layout === "fillX") return STANDING_LABEL_PX / scale;
    if (isNarrow && index > 0) return 0;
    return (LABEL_PX[index] ?? LABEL_PX[1]) / scale;
  });
  return layoutUnits({ ...input, options: { words: WORDS, labelHeights } });
}

function meanWidth({ groups }: UnitLayout, depth: number): number {
  let sum = 0;
  let count = 0;
  for (let group = 0; group < groups.count; group += 1) {
    if (groups.depth[group] !== depth) continue;
    sum += groups.width[group] ?? 0;
    count += 1;
  }
  return count === 0 ? 0 : sum / count;
}
