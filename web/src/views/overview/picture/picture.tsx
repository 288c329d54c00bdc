// Every unit as a square: drawn, zoomed, pointed at, walked through by keys, selected.

import { type KeyboardEvent, useCallback, useEffect, useId, useMemo, useState, useSyncExternalStore } from "react";
import { nameAt } from "../../../api/columns.ts";
import type { Direction } from "../../../layers/squares/pick-grid.ts";
import { select } from "../../../state/changes.ts";
import type { Selection } from "../../../state/screen.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import type { Size } from "./camera.ts";
import { findSelected, type Outlined } from "./outline-painter.ts";
import styles from "./picture.module.css";
import type { Stage } from "./stage.ts";
import { UnitTip } from "./unit-tip.tsx";
import { describePicture, describeUnit, findUnit, listSelected, selectionOf } from "./unit-words.ts";
import { type LayoutWorker, useLayout } from "./use-layout.ts";
import type { PictureModel } from "./use-picture.ts";
import { usePointer } from "./use-pointer.ts";
import { useStage, useStageData, useStageOutlines, useStageRefs, useStageSize } from "./use-stage.ts";

interface PictureProps {
  readonly worker: LayoutWorker | null;
  readonly model: PictureModel;
  readonly selection: Selection | null;
}

const ZOOM_STEP = 1.4;

export function Picture({ worker, model, selection }: PictureProps) {
  const change = useChangeScreen();
  const summaryId = useId();
  const refs = useStageRefs();
  const found = useStage(refs);
  const stage = found === "failed" ? null : found;
  const size = useStageSize(stage, refs.place, selection !== null);
  const placed = useLayout(worker, model.units, model.arrangement.view, size);
  useStageData(stage, model, placed);

  const [focusedUnit, setFocusedUnit] = useState<string | null>(null);
  const focused = useMemo(() => {
    return placed && focusedUnit !== null ? findUnit(placed.units, focusedUnit) : null;
  }, [placed, focusedUnit]);
  const choose = (row: number | null) =>
    change(select(row === null || !placed ? null : selectionOf(placed.units, row)));
  const pointer = usePointer(stage, refs.place, choose);
  const { clear } = pointer;
  // biome-ignore lint/correctness/useExhaustiveDependencies: when units fly, another one comes to be under the pointer
  useEffect(clear, [placed]);
  const outlined = useMemo((): Outlined => {
    const rows = placed ? listSelected(placed.units, selection) : [];
    const isWorkload = placed && selection?.kind === "workload";
    const selected = isWorkload ? findSelected(placed.layout, selection.key, rows) : { groups: [], rows };
    return { ...selected, hovered: pointer.row, focused };
  }, [placed, selection, pointer.row, focused]);
  useStageOutlines(stage, outlined);

  const walk = (direction: Direction) => {
    const from = focused ?? pointer.row;
    const next = from === null ? firstRow(placed?.layout.size) : (stage?.grid?.findNext(from, direction) ?? from);
    if (next === null || placed === null) return;
    stage?.reveal(next);
    setFocusedUnit(nameAt(placed.units.snapshot.names("unit"), next));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const direction = DIRECTIONS[event.key];
    if (direction) walk(direction);
    else if (event.key === "Enter" && focused !== null) choose(focused);
    else if (event.key === "0") stage?.fit();
    else if (event.key === "+" || event.key === "=") stage?.zoomMiddle(ZOOM_STEP);
    else if (event.key === "-") stage?.zoomMiddle(1 / ZOOM_STEP);
    else return;
    event.preventDefault();
  };
  const told = pointer.row ?? focused;
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
        data-pointed={pointer.row !== null || undefined}
        data-dragging={pointer.isDragging || undefined}
        onKeyDown={onKeyDown}
        onBlur={() => setFocusedUnit(null)}
        {...pointer.handlers}
        onDoubleClick={() => stage?.fit()}
      >
        <canvas ref={refs.groups} />
        <canvas ref={refs.squares} />
        <canvas ref={refs.outlines} />
        <p id={summaryId} className={styles.hidden}>
          {placed && describePicture(model, placed.layout)} Arrow keys move, Enter selects, plus and minus zoom, 0 fits.
        </p>
        {stage && placed && size && told !== null && !pointer.isDragging && (
          <Tip stage={stage} model={model} row={told} picture={size} />
        )}
        {placed?.layout.unitCount === 0 && <Nothing model={model} />}
        {found === "failed" && <CannotDraw />}
      </div>
      <Footer stage={stage} />
    </>
  );
}

const DIRECTIONS: Readonly<Record<string, Direction>> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
};

function firstRow(sizes: Float32Array | undefined): number | null {
  const row = sizes?.findIndex((size) => size > 0) ?? -1;
  return row < 0 ? null : row;
}

interface TipProps {
  readonly stage: Stage;
  readonly model: PictureModel;
  readonly row: number;
  readonly picture: Size;
}

function Tip({ stage, model, row, picture }: TipProps) {
  const watch = useCallback((watcher: () => void) => stage.watch(watcher), [stage]);
  useSyncExternalStore(watch, () => stage.camera);
  const place = stage.locate(row);
  const words = describeUnit(model.units, row, model.color);
  const holder = selectionOf(model.units, row);
  const held = holder?.kind === "workload" ? listSelected(model.units, holder).length : 0;
  if (place === null) return null;
  return (
    <>
      <UnitTip words={words} held={held} x={place[0]} y={place[1]} picture={picture} />
      <p className={styles.hidden} aria-live="polite">
        {[words.title, words.state, words.holder, words.owner, words.value].filter(Boolean).join(", ")}
      </p>
    </>
  );
}

function Footer({ stage }: { stage: Stage | null }) {
  return (
    <footer className={styles.footer}>
      <span>scroll to zoom · drag to pan · click a square</span>
      <button type="button" aria-label="Zoom out" onClick={() => stage?.zoomMiddle(1 / ZOOM_STEP)}>
        −
      </button>
      <button type="button" aria-label="Zoom in" onClick={() => stage?.zoomMiddle(ZOOM_STEP)}>
        +
      </button>
      <button type="button" data-tip="Show everything (0)" onClick={() => stage?.fit()}>
        Fit
      </button>
    </footer>
  );
}

function Nothing({ model }: { model: PictureModel }) {
  const isQueue = model.arrangement.view.units === "requested";
  return (
    <div className={styles.none} role="status">
      <strong>{isQueue ? "Nobody waits" : "No units yet"}</strong>
      <span>{isQueue ? "No workload is waiting for GPUs now." : "They appear as soon as a source reports them."}</span>
    </div>
  );
}

function CannotDraw() {
  return (
    <div className={styles.none} role="alert">
      <strong>This browser cannot draw the picture</strong>
      <span>It needs WebGL 2. The tables show the same units.</span>
    </div>
  );
}
