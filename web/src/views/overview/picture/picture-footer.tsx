// The footer of the picture: drag mode, zoom buttons, export.

import { useId } from "react";
import { formatCount } from "../../../base/format.ts";
import { useServices } from "../../../data/services.ts";
import { useScreen } from "../../../state/use-screen.ts";
import { ExportMenu } from "../../../widgets/export-menu.tsx";
import { Segmented } from "../../../widgets/segmented.tsx";
import { MANY_UNITS, savePng, saveSvg } from "./export-picture.ts";
import styles from "./picture-footer.module.css";
import type { Stage } from "./stage.ts";
import { ZOOM_STEP } from "./use-keys.ts";
import type { PlacedUnits } from "./use-layout.ts";
import type { PictureModel } from "./use-picture.ts";
import type { PointerMode } from "./use-pointer.ts";

const MODES = [
  { value: "pan", title: "Pan" },
  { value: "box", title: "Box" },
  { value: "lasso", title: "Lasso" },
] as const;

const HINTS: Readonly<Record<PointerMode, string>> = {
  pan: "scroll to zoom · drag to pan · Shift-drag or Alt-drag to select · double-click a group to zoom to it · ? for keys",
  box: "drag a box around units · Ctrl adds to the selection · Esc ends",
  lasso: "draw around units · Ctrl adds to the selection · Esc ends",
};

/** The footer suggests repacking if squares could be larger by this factor. */
const LOOSE = 1.1;
const REPACK_TIP = "Groups keep their places while workloads start and end. Repacking closes the gaps (R)";

interface PictureFooterProps {
  readonly stage: Stage | null;
  readonly model: PictureModel;
  readonly placed: PlacedUnits | null;
  readonly mode: PointerMode;
  onMode(mode: PointerMode): void;
  onRepack(): void;
}

export function PictureFooter({ stage, model, placed, mode, onMode, onRepack }: PictureFooterProps) {
  return (
    <footer className={styles.footer}>
      <Segmented label="Dragging" name={useId()} options={MODES} value={mode} onChange={onMode} />
      <span className={styles.hint}>{HINTS[mode]}</span>
      <button
        type="button"
        disabled={!placed?.layout.isKept}
        data-loose={(placed?.layout.looseness ?? 1) > LOOSE || undefined}
        data-tip={REPACK_TIP}
        onClick={onRepack}
      >
        Repack
      </button>
      {stage && placed && <PictureExport stage={stage} model={model} placed={placed} />}
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

function PictureExport({ stage, model, placed }: { stage: Stage; model: PictureModel; placed: PlacedUnits }) {
  const { clock } = useServices();
  const { at } = useScreen();
  const subject = () => ({
    layout: placed.layout,
    camera: stage.camera,
    viewport: stage.viewport,
    model,
    atMs: at ?? clock.now(),
  });
  const count = placed.layout.unitCount;
  return (
    <ExportMenu
      what="the picture"
      isWord
      files={{ png: () => savePng(subject()), svg: () => saveSvg(subject()) }}
      hints={{
        png: "at twice the screen resolution",
        ...(count > MANY_UNITS ? { svg: `${formatCount(count)} units, a few MB` } : {}),
      }}
    />
  );
}
