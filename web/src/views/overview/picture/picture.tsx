// The picture: every unit as a square, with zoom, tooltips, keyboard navigation and selection.

import {
  type MouseEvent,
  useCallback,
  useEffect,
  useId,
  useMemo,
  useReducer,
  useState,
  useSyncExternalStore,
} from "react";
import { nameAt } from "../../../api/columns.ts";
import { isOfQueue } from "../../../layout/grammar.ts";
import { clearFilters } from "../../../state/changes.ts";
import type { Selection } from "../../../state/screen.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { Button } from "../../../widgets/button.tsx";
import { Message } from "../../../widgets/frame.tsx";
import { listSelectedRows } from "../details/selected-rows.ts";
import { Breadcrumb } from "./breadcrumb.tsx";
import { GroupTip } from "./group-tip.tsx";
import { listAncestry, selectionOfGroup } from "./groups.ts";
import { Minimap } from "./minimap.tsx";
import { findOutlined, NOTHING_OUTLINED } from "./outline-painter.ts";
import styles from "./picture.module.css";
import { PictureFooter } from "./picture-footer.tsx";
import { NOTHING_POINTED } from "./pointed.ts";
import { UnitRuleLines } from "./rules/rule-lines.tsx";
import { describeMarks, type RuleMarks } from "./rules/rule-marks.ts";
import { RuleTip } from "./rules/rule-tip.tsx";
import { useRuleMarks } from "./rules/use-rule-marks.ts";
import type { Stage } from "./stage.ts";
import { UnitTip } from "./unit-tip.tsx";
import { describePicture, describeUnit, findUnit, selectionOf } from "./unit-words.ts";
import { handleKey, KEY_WORDS } from "./use-keys.ts";
import { type LayoutWorker, type PlacedUnits, useLayout } from "./use-layout.ts";
import { useLinkedSpace, useLinkedWindow } from "./use-linked-window.ts";
import type { PictureModel } from "./use-picture.ts";
import { type PointerMode, pointOf, usePointer } from "./use-pointer.ts";
import { useSelecting } from "./use-selecting.ts";
import { useStage, useStageData, useStageOutlines, useStageRefs, useStageSize } from "./use-stage.ts";

interface PictureProps {
  readonly worker: LayoutWorker | null;
  readonly model: PictureModel;
  readonly selection: Selection | null;
  /** The units have their places and are drawn in the next frame. */
  onPlaced(): void;
}

export function Picture({ worker, model, selection, onPlaced }: PictureProps) {
  const summaryId = useId();
  const refs = useStageRefs();
  const stageState = useStage(refs);
  const stage = stageState === "failed" ? null : stageState;
  const size = useStageSize(stage, refs.place, selection !== null);
  const [packing, repack] = useReducer((last: number) => last + 1, 0);
  const space = useLinkedSpace(size);
  const placed = useLayout(worker, model.units, model.arrangement.view, space, model.filtered, packing);
  useStageData(stage, model, placed);
  useLinkedWindow(stage, placed, space);
  const isPlaced = stage !== null && placed !== null;
  useEffect(() => {
    if (isPlaced || stageState === "failed") onPlaced();
  }, [isPlaced, stageState, onPlaced]);
  const ruleMarks = useRuleMarks(stage, model, placed);
  const [mode, setMode] = useState<PointerMode>("pan");
  const selecting = useSelecting(stage, placed, selection, ruleMarks);
  const pointer = usePointer({
    stage,
    place: refs.place,
    mode,
    onChoose: selecting.choose,
    onLoop: selecting.chooseLoop,
  });
  const { pointed, clear } = pointer;
  // biome-ignore lint/correctness/useExhaustiveDependencies: when units fly, another one comes to be under the pointer
  useEffect(clear, [placed]);
  const [focused, focus] = useFocusedRow(placed);
  useEffect(() => stage?.setPointed(pointed, focused), [stage, pointed, focused]);
  const outlined = useMemo(() => {
    const rows = placed ? listSelectedRows(placed.units, selection) : [];
    return placed && rows.length > 0 ? findOutlined(placed.layout, rows) : NOTHING_OUTLINED;
  }, [placed, selection]);
  useStageOutlines(stage, outlined);

  const zoomToGroup = (event: MouseEvent) => {
    const group = stage?.findGroup(...pointOf(event)) ?? null;
    if (group === null) stage?.fit();
    else stage?.zoomToGroup(group);
    clear();
  };
  const { highlight } = model;
  const barRows = pointed.rule && ruleMarks ? ruleMarks.rules[pointed.rule.rule]?.rows.broken : undefined;
  useEffect(() => {
    if (barRows === undefined) return;
    highlight({ kind: "rows", rows: barRows });
    return () => highlight(null);
  }, [barRows, highlight]);
  const tipRow = pointed.row ?? (pointed.group === null && pointed.rule === null ? focused : null);
  // Rows and values of another snapshot do not match this layout.
  const units = placed && placed.units.snapshot === model.units.snapshot ? model.units : placed?.units;
  return (
    <>
      <div
        ref={refs.place}
        // Arrow keys walk from unit to unit, which a reader must leave to the page.
        role="application"
        aria-label="Picture of all units"
        aria-describedby={summaryId}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: an application is operated by keys
        tabIndex={0}
        className={styles.picture}
        data-unit-count={placed && placed.view === model.arrangement.view ? placed.layout.unitCount : undefined}
        data-kept={placed?.layout.isKept || undefined}
        data-marked-groups={ruleMarks?.groups.length}
        data-rule-slots={ruleMarks?.slotCount}
        data-pointed={pointed !== NOTHING_POINTED || undefined}
        data-mode={mode}
        data-dragging={pointer.dragging ?? undefined}
        onKeyDown={(event) =>
          handleKey(event, {
            stage,
            layout: placed?.layout ?? null,
            from: focused ?? pointed.row,
            focused,
            mode,
            groupOfFocus: placed && findSelectedGroup(placed, focused ?? pointed.row, selection),
            focus,
            choose: (row) => selecting.choose({ ...NOTHING_POINTED, row }, event.shiftKey),
            chooseGroup: selecting.chooseGroup,
            setMode,
            repack,
            cancel: pointer.cancel,
          })
        }
        onBlur={() => focus(null)}
        {...pointer.handlers}
        onDoubleClick={zoomToGroup}
      >
        <canvas ref={refs.groups} />
        <canvas ref={refs.squares} className={styles.squares} />
        <canvas ref={refs.outlines} />
        <svg className={styles.overlay} aria-hidden="true">
          <rect ref={refs.hovered} className={styles.hovered} />
          <rect ref={refs.focused} className={styles.focused} />
          <path ref={refs.sketch} className={styles.sketch} />
        </svg>
        <p id={summaryId} data-visually-hidden={true}>
          {placed && describePicture(model, placed.layout)} {ruleMarks && describeMarks(ruleMarks)} {KEY_WORDS}
        </p>
        {stage && placed && units && pointer.dragging === null && (
          <>
            {tipRow !== null && <Tip stage={stage} model={model} row={tipRow} marks={ruleMarks} />}
            {tipRow === null && pointed.group !== null && (
              <GroupTip stage={stage} layout={placed.layout} units={units} group={pointed.group} marks={ruleMarks} />
            )}
            {pointed.rule && ruleMarks && (
              <RuleTip stage={stage} layout={placed.layout} marks={ruleMarks} pointed={pointed.rule} />
            )}
          </>
        )}
        {stage && placed && <Breadcrumb stage={stage} layout={placed.layout} />}
        {stage && placed && <Minimap stage={stage} layout={placed.layout} marks={model.marks} />}
        {placed?.layout.unitCount === 0 && <Nothing model={model} />}
        {stageState === "failed" && <CannotDraw />}
      </div>
      {placed && model.drawn > 0 && model.matching === 0 && <Unmatched />}
      <PictureFooter stage={stage} model={model} placed={placed} mode={mode} onMode={setMode} onRepack={repack} />
    </>
  );
}

/** Rows shift when units come and go: what is focused is remembered by its name. */
function useFocusedRow(placed: PlacedUnits | null): readonly [number | null, (row: number | null) => void] {
  const [unit, setUnit] = useState<string | null>(null);
  const row = useMemo(() => (placed && unit !== null ? findUnit(placed.units, unit) : null), [placed, unit]);
  const focus = (next: number | null) => {
    setUnit(next === null || placed === null ? null : nameAt(placed.units.snapshot.names("unit"), next));
  };
  return [row, focus];
}

/** Which of the groups around a row is selected; null: none of them. */
function findSelectedGroup({ layout, view }: PlacedUnits, row: number | null, selection: Selection | null) {
  if (row === null || selection === null) return null;
  const isSelected = (group: number) => {
    const groupSelection = selectionOfGroup(layout, group, view.units);
    return groupSelection?.kind === selection.kind && groupSelection.key === selection.key;
  };
  return listAncestry(layout, layout.group[row] ?? 0).find(isSelected) ?? null;
}

interface TipProps {
  readonly stage: Stage;
  readonly model: PictureModel;
  readonly row: number;
  readonly marks: RuleMarks | null;
}

function Tip({ stage, model, row, marks }: TipProps) {
  const watch = useCallback((watcher: () => void) => stage.watch(watcher), [stage]);
  useSyncExternalStore(watch, () => stage.camera);
  const place = stage.locate(row);
  const words = describeUnit(model.units, row, model.color);
  const holder = selectionOf(model.units, row);
  const heldCount = useMemo(
    () =>
      holder?.kind === "workload" ? listSelectedRows(model.units, { kind: "workload", key: holder.key }).length : 0,
    [model.units, holder?.kind, holder?.key],
  );
  if (place === null) return null;
  return (
    <>
      <UnitTip words={words} held={heldCount} x={place[0]} y={place[1]} picture={stage.viewport}>
        {marks && <UnitRuleLines marks={marks} row={row} />}
      </UnitTip>
      <p data-visually-hidden={true} aria-live="polite">
        {[words.title, words.state, words.holder, words.owner, words.value].filter(Boolean).join(", ")}
      </p>
    </>
  );
}

function Nothing({ model }: { model: PictureModel }) {
  const [title, words] = describeNothing(model);
  return (
    <Message className={styles.none} role="status">
      <strong>{title}</strong>
      <span>{words}</span>
    </Message>
  );
}

function describeNothing({ arrangement: { view }, drawn }: PictureModel): readonly [title: string, words: string] {
  if (drawn > 0) return ["No unit matches the filters", "Clear the filters, or remove one, to see units again."];
  if (isOfQueue(view)) return ["No workloads waiting", "No workload is waiting for GPUs now."];
  return ["No units yet", "They appear as soon as a source reports them."];
}

/** Outside the picture, where pressing does not drag it. */
function Unmatched() {
  const change = useChangeScreen();
  return (
    <p className={styles.unmatched} role="status">
      No unit matches the filters
      <Button onClick={() => change(clearFilters)}>Clear filters</Button>
    </p>
  );
}

function CannotDraw() {
  return (
    <Message className={styles.none} role="alert">
      <strong>This browser cannot draw the picture</strong>
      <span>It needs WebGL 2. The tables show the same units.</span>
    </Message>
  );
}
