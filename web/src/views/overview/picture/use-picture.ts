// What the picture shows, from the screen and the data: arrangement, colors, what is filtered away. Places come later, from
// the worker.

import { useMemo } from "react";
import type { Units } from "../../../data/units.ts";
import type { ShownUnits, View } from "../../../layout/grammar.ts";
import { COLOR_NAMES, type ColorName, type Screen } from "../../../state/screen.ts";
import type { Arrangement } from "../editor/use-arrangement.ts";
import { type Coloring, computeColoring } from "./color/coloring.ts";
import { type Tokens, useTokens } from "./tokens.ts";

export interface PictureModel {
  readonly units: Units;
  readonly arrangement: Arrangement;
  readonly color: ColorName;
  readonly coloring: Coloring;
  readonly tokens: Tokens;
  /** How many units the arrangement shows, and how many of them the filters let through. */
  readonly drawn: number;
  readonly matching: number;
}

/** `rows`: those that the filters let through. */
export function usePicture(
  screen: Screen,
  arrangement: Arrangement | null,
  units: Units | undefined,
  rows: readonly number[] | undefined,
): PictureModel | null {
  const tokens = useTokens();
  const color = screen.color ?? (arrangement ? ownColor(arrangement) : "unit_state");
  const shown = arrangement?.view.units ?? "all";
  const drawn = useMemo(() => units && markDrawn(units, shown), [units, shown]);
  const filtered = useMemo(() => units && rows && markFiltered(units.snapshot.rowCount, rows), [units, rows]);
  const coloring = useMemo(
    () => units && drawn && computeColoring({ units, color, filtered: filtered ?? null, drawn, tokens }),
    [units, color, filtered, drawn, tokens],
  );
  return useMemo(() => {
    if (!arrangement || !units || !drawn || !coloring) return null;
    return { units, arrangement, color, coloring, tokens, ...countShown(drawn, filtered ?? null) };
  }, [units, arrangement, color, coloring, tokens, drawn, filtered]);
}

function countShown(
  isDrawn: Uint8Array,
  filtered: Uint8Array | null,
): { readonly drawn: number; readonly matching: number } {
  let drawn = 0;
  let matching = 0;
  isDrawn.forEach((flag, row) => {
    drawn += flag;
    if (filtered?.[row] !== 1) matching += flag;
  });
  return { drawn, matching };
}

/** The color an arrangement is meant to be seen in. */
export function ownColor({ view }: { readonly view: View }): ColorName {
  return COLOR_NAMES.find((name) => name === view.mark.color) ?? "unit_state";
}

function markDrawn({ snapshot }: Units, shown: ShownUnits): Uint8Array {
  const { codes, names } = snapshot.names("unit_state");
  const isDrawn = names.map((name) => shown === "all" || (name === "requested") === (shown === "requested"));
  return Uint8Array.from(codes, (code) => (isDrawn[code] ? 1 : 0));
}

function markFiltered(rowCount: number, rows: readonly number[]): Uint8Array | null {
  if (rows.length === rowCount) return null;
  const filtered = new Uint8Array(rowCount).fill(1);
  for (const row of rows) filtered[row] = 0;
  return filtered;
}
