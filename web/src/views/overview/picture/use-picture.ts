// The model of the picture, from the screen and the data: arrangement, colors, filters. Positions come later, from the
// worker.

import { useMemo, useState } from "react";
import type { Problem } from "../../../base/problem.ts";
import type { Units } from "../../../data/units.ts";
import type { Marks } from "../../../layers/squares/marks.ts";
import type { ShownUnits, View } from "../../../layout/grammar.ts";
import { markShown } from "../../../layout/shown-units.ts";
import { type Attribute, type AttributeName, attributeOf, findAttribute } from "../../../state/attributes.ts";
import type { Screen } from "../../../state/screen.ts";
import type { Arrangement } from "../editor/use-arrangement.ts";
import { markFiltered, type Narrowed } from "../filter/apply-where.ts";
import { type Coloring, computeColoring, type Highlight, highlightMarks } from "./color/coloring.ts";
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
  /** Highlights some units until it is called again; null: none. */
  highlight(target: Highlight | null): void;
}

export function usePicture(
  screen: Screen,
  arrangement: Arrangement | null,
  units: Units | undefined,
  narrowed: Narrowed | undefined,
  problem: Problem | null,
): PictureModel | null {
  const tokens = useTokens();
  const [highlighted, highlight] = useState<Highlight | null>(null);
  const color = attributeOf(screen.color ?? (arrangement ? ownColor(arrangement) : "unit_state"));
  const shown = arrangement?.view.units ?? "all";
  const settings = screen.colors;
  const drawnRows = useMemo(() => units && markDrawn(units, shown), [units, shown]);
  const filtered = useMemo(() => (narrowed ? markFiltered(narrowed) : null), [narrowed]);
  const coloring = useMemo(() => {
    if (!units || !drawnRows || narrowed?.rowCount !== units.snapshot.rowCount) return null;
    return computeColoring({ units, attribute: color, settings, filtered, drawn: drawnRows, tokens });
  }, [units, color, settings, filtered, narrowed, drawnRows, tokens]);
  const unitRules = units?.rules;
  const { hiddenRules } = screen;
  const rules = useMemo(() => listShownRules(unitRules, hiddenRules, tokens), [unitRules, hiddenRules, tokens]);
  const marks = useMemo(
    () => units && coloring && highlightMarks(units, coloring.marks, highlighted),
    [units, coloring, highlighted],
  );
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
      highlight,
    };
  }, [units, arrangement, color, coloring, marks, tokens, rules, drawnRows, filtered, narrowed, problem]);
}

/** The color an arrangement is meant to be seen in. */
export function ownColor({ view }: { readonly view: View }): AttributeName {
  return findAttribute(view.mark.color ?? "")?.name ?? "unit_state";
}

function markDrawn({ snapshot }: Units, shown: ShownUnits): Uint8Array {
  return markShown(shown, snapshot.rowCount, snapshot.names("unit_state"), snapshot.names("workload"));
}
