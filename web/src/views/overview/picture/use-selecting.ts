// Turns clicks and drawn loops into the selection of the screen.

import { useCallback } from "react";
import { nameAt } from "../../../api/columns.ts";
import { BROKEN } from "../../../data/row-rules.ts";
import { select } from "../../../state/changes.ts";
import { encodeUnits, type Selection } from "../../../state/selection.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { listSelectedRows } from "../details/selected-rows.ts";
import { listGroupRows, selectionOfGroup } from "./groups.ts";
import { listInLoop, type Point } from "./lasso.ts";
import type { Pointed } from "./pointed.ts";
import type { RuleMarks } from "./rules/rule-marks.ts";
import type { Stage } from "./stage.ts";
import { selectionOf } from "./unit-words.ts";
import type { PlacedUnits } from "./use-layout.ts";

interface Selecting {
  /** Null of both: nothing is selected any more. */
  choose(pointed: Pointed, isAdding: boolean): void;
  chooseLoop(corners: readonly Point[], isAdding: boolean): void;
  chooseGroup(group: number): void;
}

/** `rules`: a click on the bar of one selects the units of its group that break it. */
export function useSelecting(
  stage: Stage | null,
  placed: PlacedUnits | null,
  selection: Selection | null,
  rules: RuleMarks | null,
): Selecting {
  const change = useChangeScreen();
  const take = useCallback((next: Selection | null) => change(select(next)), [change]);
  if (placed === null) return { choose: () => undefined, chooseLoop: () => undefined, chooseGroup: () => undefined };
  const { layout, units, view } = placed;
  const chooseGroup = (group: number) => {
    take(selectionOfGroup(layout, group, view.units) ?? selectionOfRows(placed, listGroupRows(layout, group)));
  };
  return {
    chooseGroup,
    choose({ row, group, rule }, isAdding) {
      if (rule !== null && rules !== null) {
        const states = rules.rules[rule.rule]?.rows.states;
        const inside = listGroupRows(layout, rule.group);
        const breaking = inside.filter((at) => states?.[at] === BROKEN);
        // Where all of them do, the group has a better name than a list of its units.
        if (breaking.length === inside.length && !isAdding) chooseGroup(rule.group);
        else
          take(selectionOfRows(placed, isAdding ? joinRows(listSelectedRows(units, selection), breaking) : breaking));
        return;
      }
      if (isAdding && (row !== null || group !== null)) {
        const touched = row !== null ? [row] : listGroupRows(layout, group ?? 0);
        take(selectionOfRows(placed, toggleRows(listSelectedRows(units, selection), touched)));
      } else if (row !== null) take(selectionOf(units, row));
      else if (group !== null) chooseGroup(group);
      else take(null);
    },
    chooseLoop(corners, isAdding) {
      if (!stage?.grid) return;
      const loopRows = listInLoop(layout, stage.grid, corners);
      const rows = isAdding ? joinRows(listSelectedRows(units, selection), loopRows) : loopRows;
      take(selectionOfRows(placed, rows));
    },
  };
}

/** Those that are selected already go, where all of them are; else all come. */
export function toggleRows(selected: readonly number[], touched: readonly number[]): readonly number[] {
  const selectedSet = new Set(selected);
  if (!touched.every((row) => selectedSet.has(row))) return joinRows(selected, touched);
  const deselected = new Set(touched);
  return selected.filter((row) => !deselected.has(row));
}

function joinRows(some: readonly number[], others: readonly number[]): readonly number[] {
  return [...new Set([...some, ...others])].sort((a, b) => a - b);
}

function selectionOfRows({ units }: PlacedUnits, rows: readonly number[]): Selection | null {
  const unit = units.snapshot.names("unit");
  const names = rows.map((row) => nameAt(unit, row) ?? "").filter((name) => name !== "");
  const [first] = names;
  if (first === undefined) return null;
  return names.length === 1 ? { kind: "unit", key: first } : { kind: "units", key: encodeUnits(names) };
}
