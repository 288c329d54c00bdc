// What the picture shows, from the screen and the data: arrangement, colors, what is filtered away. Places come later, from
// the worker.

import { useMemo, useState } from "react";
import type { Problem } from "../../../base/problem.ts";
import type { Units } from "../../../data/units.ts";
import type { Marks } from "../../../layers/squares/marks.ts";
import type { ShownUnits, View } from "../../../layout/grammar.ts";
import { type Attribute, type AttributeName, attributeOf, findAttribute } from "../../../state/attributes.ts";
import type { Screen } from "../../../state/screen.ts";
import type { Arrangement } from "../editor/use-arrangement.ts";
import { markFiltered, type Narrowed } from "../filter/apply-where.ts";
import { type Coloring, computeColoring, type Lit, lightMarks } from "./color/coloring.ts";
import type { ShownRule } from "./rules/rule-marks.ts";
import { listShownRules } from "./rules/use-rule-marks.ts";
import { type Tokens, useTokens } from "./tokens.ts";

export interface PictureModel {
  readonly units: Units;
  readonly arrangement: Arrangement;
  readonly color: Attribute;
  readonly coloring: Coloring;
  /** As they are drawn: what the reader points at in the legend stands out. */
  readonly marks: Marks;
  readonly tokens: Tokens;
  /** Rules whose breakers are marked, in the order of the bar. */
  readonly rules: readonly ShownRule[];
  /** 1 for each row that is in the picture, and 1 for each that the filters leave out. */
  readonly drawnRows: Uint8Array;
  readonly filtered: Uint8Array | null;
  /** Which conditions each row fails. */
  readonly narrowed: Narrowed;
  /** How many units the arrangement shows, and how many of them the filters let through. */
  readonly drawn: number;
  readonly matching: number;
  /** Why values are missing that were asked for. */
  readonly problem: Problem | null;
  /** Makes units stand out until it is told otherwise. */
  light(lit: Lit | null): void;
}

export function usePicture(
  screen: Screen,
  arrangement: Arrangement | null,
  units: Units | undefined,
  narrowed: Narrowed | undefined,
  problem: Problem | null,
): PictureModel | null {
  const tokens = useTokens();
  const [lit, light] = useState<Lit | null>(null);
  const color = attributeOf(screen.color ?? (arrangement ? ownColor(arrangement) : "unit_state"));
  const shown = arrangement?.view.units ?? "all";
  const settings = screen.colors;
  const drawnRows = useMemo(() => units && markDrawn(units, shown), [units, shown]);
  const filtered = useMemo(() => (narrowed ? markFiltered(narrowed) : null), [narrowed]);
  const coloring = useMemo(() => {
    if (!units || !drawnRows || narrowed?.rowCount !== units.snapshot.rowCount) return null;
    return computeColoring({ units, attribute: color, settings, filtered, drawn: drawnRows, tokens });
  }, [units, color, settings, filtered, narrowed, drawnRows, tokens]);
  const said = units?.rules;
  const { hiddenRules } = screen;
  const rules = useMemo(() => listShownRules(said, hiddenRules, tokens), [said, hiddenRules, tokens]);
  const marks = useMemo(() => units && coloring && lightMarks(units, coloring.marks, lit), [units, coloring, lit]);
  return useMemo(() => {
    if (!arrangement || !units || !drawnRows || !narrowed || !coloring || !marks) return null;
    const { drawn, matching } = coloring;
    return {
      units,
      arrangement,
      color,
      coloring,
      marks,
      tokens,
      rules,
      drawnRows,
      filtered,
      narrowed,
      drawn,
      matching,
      problem,
      light,
    };
  }, [units, arrangement, color, coloring, marks, tokens, rules, drawnRows, filtered, narrowed, problem]);
}

/** The color an arrangement is meant to be seen in. */
export function ownColor({ view }: { readonly view: View }): AttributeName {
  return findAttribute(view.mark.color ?? "")?.name ?? "unit_state";
}

function markDrawn({ snapshot }: Units, shown: ShownUnits): Uint8Array {
  const { codes, names } = snapshot.names("unit_state");
  const isShown = Uint8Array.from(names, (name) =>
    shown === "all" || (name === "requested") === (shown === "requested") ? 1 : 0,
  );
  const drawn = new Uint8Array(codes.length);
  for (let row = 0; row < codes.length; row += 1) drawn[row] = isShown[codes[row] ?? 0] ?? 0;
  return drawn;
}
