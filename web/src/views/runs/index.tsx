// Runs: what training runs cost on this hardware, alone and sharing a GPU. Chosen on the left, compared in the middle.

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
import { findRows, groupRuns, listOwnRuns, type ShownPage, showRuns } from "./groups.ts";
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
  const own = useMemo(() => listOwnRuns(tree.value, workload), [tree.value, workload]);
  const shown = useMemo(() => showRuns(page, tree.value, own), [page, tree.value, own]);
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
            {workload !== null && <OfWorkload workload={workload} own={own} shown={shown.runs} />}
            <Comparison tree={value} page={shown} />
          </>
        )}
      </Frame>
    </ViewLayout>
  );
}

/** What the selected workload has to do with the runs below. */
function OfWorkload({ workload, own, shown }: { workload: string; own: readonly string[]; shown: readonly string[] }) {
  const change = useChangeScreen();
  if (own.length > 0 && own.every((run) => shown.includes(run))) return null;
  return (
    <p className={styles.selected} role="status">
      {own.length === 0 ? (
        <>No run was tracked in the selected workload {workload}.</>
      ) : (
        <>
          {formatPlural(own.length, "run")} of the selected workload {workload} {own.length === 1 ? "is" : "are"} not
          compared.{" "}
          <button type="button" onClick={() => change(changeRuns({ runs: own, open: own[0] ?? null }))}>
            Compare {own.length === 1 ? "it" : "them"}
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
  const known = useRunMetrics(rows.map(({ run }) => run)).value;
  const metrics = page.metrics.length > 0 || !known ? page.metrics : chooseMetrics(known);
  const title = `${formatPlural(rows.length, "run")} compared`;
  return (
    <section ref={place} className={styles.comparison} aria-label={title}>
      <Toolbar
        page={page}
        known={known}
        metrics={metrics}
        onCsv={() => saveCsv(groups, quantities)}
        onSvg={() => place.current && saveSvg(place.current, "runs.svg")}
        onPng={() => place.current && void savePng(place.current, "runs.png")}
        onHtml={() => place.current && saveHtml(place.current, title, groups, quantities)}
      />
      {rows.length === 0 && <p className={styles.quiet}>Choose the runs to compare on the left.</p>}
      {page.drawing === "lines" && known && rows.length > 0 && (
        <LinesDrawing page={page} groups={groups} known={known} metrics={metrics} />
      )}
      {page.drawing === "bars" && (
        <>
          <RunLegend groups={groups} />
          <BarsDrawing groups={groups} quantities={quantities} />
        </>
      )}
      {page.drawing === "scatter" && <ScatterDrawing page={page} groups={groups} quantities={quantities} />}
      {page.drawing === "parallel" && <CoordinatesDrawing groups={groups} quantities={quantities} />}
      {page.drawing === "table" && <TableDrawing page={page} groups={groups} quantities={quantities} />}
    </section>
  );
}

function NoRuns() {
  return (
    <>
      <strong>No run was tracked yet</strong>
      <span>Put this before the command that trains; the script stays as it is:</span>
      <code>clusterscape run --server {window.location.origin} model.py --batch-size 256</code>
    </>
  );
}
