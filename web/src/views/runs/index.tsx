// The runs page: compares training runs by cost and speed on this hardware, alone and sharing a GPU.

import { useMemo, useRef } from "react";
import type { RunTree } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import { savePng, saveSvg } from "../../charts/save-picture.ts";
import { useRunMetrics, useRunTree } from "../../data/runs.ts";
import { changeRuns } from "../../state/runs.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { Frame } from "../../widgets/frame.tsx";
import { ViewLayout } from "../../widgets/view-layout.tsx";
import { BarsDrawing } from "./bars-drawing.tsx";
import { CoordinatesDrawing } from "./coordinates-drawing.tsx";
import { saveCsv, saveHtml } from "./export-page.ts";
import { describeFigure } from "./figure-text.ts";
import { findRows, groupRuns, listWorkloadRuns, type ShownPage, showRuns } from "./groups.ts";
import { HangDrawing } from "./hang/hang-drawing.tsx";
import { RunLegend } from "./legend.tsx";
import { LinesDrawing } from "./lines-drawing.tsx";
import { chooseMetrics } from "./metric-menu.tsx";
import { Picker } from "./picker.tsx";
import { listQuantities } from "./quantities.ts";
import { RunDetails } from "./run-details.tsx";
import styles from "./runs.module.css";
import { ScatterDrawing } from "./scatter-drawing.tsx";
import { Settings } from "./settings.tsx";
import { RunsStrip } from "./strip.tsx";
import { TableDrawing } from "./table-drawing.tsx";
import { Toolbar } from "./toolbar.tsx";

export default function Runs() {
  const { runs: page, selection } = useScreen();
  const tree = useRunTree();
  const workload = selection?.kind === "workload" ? selection.key : null;
  const workloadRuns = useMemo(() => listWorkloadRuns(tree.value, workload), [tree.value, workload]);
  const shown = useMemo(() => showRuns(page, tree.value, workloadRuns), [page, tree.value, workloadRuns]);
  return (
    <ViewLayout
      strip={<RunsStrip tree={tree.value} page={shown} />}
      controls={
        tree.value && tree.value.rows.length > 0 ? (
          <div>
            <Picker tree={tree.value} page={shown} />
            {shown.drawing === "lines" && <Settings page={shown} />}
          </div>
        ) : null
      }
      details={shown.open === null ? null : <RunDetails key={shown.open} run={shown.open} />}
    >
      <Frame source={tree} what="runs" isEmpty={({ rows }) => rows.length === 0} empty={<NoRuns />}>
        {(value) => (
          <>
            {workload !== null && <WorkloadNotice workload={workload} workloadRuns={workloadRuns} shown={shown.runs} />}
            <Comparison tree={value} page={shown} />
          </>
        )}
      </Frame>
    </ViewLayout>
  );
}

/** Whether the runs of the selected workload are compared. */
function WorkloadNotice({
  workload,
  workloadRuns,
  shown,
}: {
  workload: string;
  workloadRuns: readonly string[];
  shown: readonly string[];
}) {
  const change = useChangeScreen();
  if (workloadRuns.length > 0 && workloadRuns.every((run) => shown.includes(run))) return null;
  return (
    <p className={styles.selected} role="status">
      {workloadRuns.length === 0 ? (
        <>The selected workload {workload} has no tracked runs.</>
      ) : (
        <>
          {formatPlural(workloadRuns.length, "run")} of the selected workload {workload}{" "}
          {workloadRuns.length === 1 ? "is" : "are"} not compared.{" "}
          <button
            type="button"
            onClick={() => change(changeRuns({ runs: workloadRuns, open: workloadRuns[0] ?? null }))}
          >
            Compare {workloadRuns.length === 1 ? "it" : "them"}
          </button>
        </>
      )}
    </p>
  );
}

function Comparison({ tree, page }: { tree: RunTree; page: ShownPage }) {
  const place = useRef<HTMLElement>(null);
  const rows = useMemo(() => findRows(tree, page.runs), [tree, page.runs]);
  const groups = useMemo(() => groupRuns(rows, tree, page.grouping), [rows, tree, page.grouping]);
  const quantities = useMemo(() => listQuantities(rows), [rows]);
  const available = useRunMetrics(rows.map(({ run }) => run)).value;
  const metrics = page.metrics.length > 0 || !available ? page.metrics : chooseMetrics(available);
  const title = `${formatPlural(rows.length, "run")} compared`;
  return (
    <section ref={place} className={styles.comparison} aria-label={title}>
      <Toolbar
        page={page}
        available={available}
        metrics={metrics}
        onCsv={() => saveCsv(groups, quantities)}
        onSvg={() => place.current && saveSvg(place.current, "runs.svg", describeFigure(page, groups))}
        onPng={() => place.current && void savePng(place.current, "runs.png", describeFigure(page, groups))}
        onHtml={() => place.current && saveHtml(place.current, page, groups, quantities)}
      />
      {rows.length === 0 && page.drawing !== "hang" && (
        <p className={styles.empty}>Select runs to compare on the left.</p>
      )}
      {page.drawing === "lines" && available && rows.length > 0 && (
        <LinesDrawing page={page} groups={groups} available={available} metrics={metrics} />
      )}
      {page.drawing === "bars" && (
        <>
          <RunLegend groups={groups} />
          <BarsDrawing groups={groups} quantities={quantities} />
        </>
      )}
      {page.drawing === "scatter" && <ScatterDrawing page={page} groups={groups} quantities={quantities} />}
      {page.drawing === "parallel" && <CoordinatesDrawing groups={groups} quantities={quantities} />}
      {page.drawing === "hang" && <HangDrawing run={page.open} />}
      {page.drawing === "table" && <TableDrawing page={page} groups={groups} quantities={quantities} />}
    </section>
  );
}

function NoRuns() {
  return (
    <>
      <strong>No tracked runs yet</strong>
      <span>Start a training with this command; the script does not change:</span>
      <code>clusterscape run --url {window.location.origin} model.py --batch-size 256</code>
    </>
  );
}
