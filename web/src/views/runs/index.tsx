// Runs: what training runs cost on this hardware, alone and sharing a GPU. Chosen on the left, compared in the middle.

import { useMemo, useRef } from "react";
import type { RunTree } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import { savePng, saveSvg } from "../../charts/save-picture.ts";
import { useRunMetrics, useRunTree } from "../../data/runs.ts";
import type { RunsPage } from "../../state/runs.ts";
import { useScreen } from "../../state/use-screen.ts";
import { Frame } from "../../widgets/frame.tsx";
import { ViewLayout } from "../../widgets/view-layout.tsx";
import { BarsDrawing } from "./bars-drawing.tsx";
import { CoordinatesDrawing } from "./coordinates-drawing.tsx";
import { saveCsv, saveHtml } from "./export-page.ts";
import { groupRuns, type ShownPage } from "./groups.ts";
import { Legend } from "./legend.tsx";
import { LinesDrawing } from "./lines-drawing.tsx";
import { chooseMetrics } from "./metric-menu.tsx";
import { Picker } from "./picker.tsx";
import { listQuantities } from "./quantities.ts";
import { RunDetails } from "./run-details.tsx";
import styles from "./runs.module.css";
import { ScatterDrawing } from "./scatter-drawing.tsx";
import { Settings } from "./settings.tsx";
import { Strip } from "./strip.tsx";
import { TableDrawing } from "./table-drawing.tsx";
import { Toolbar } from "./toolbar.tsx";

export default function Runs() {
  const { runs: page } = useScreen();
  const tree = useRunTree();
  const shown = useMemo(() => withRuns(page, tree.value), [page, tree.value]);
  return (
    <ViewLayout
      strip={<Strip tree={tree.value} page={shown} />}
      controls={
        tree.value && tree.value.rows.length > 0 ? (
          <div className={styles.controls}>
            <Picker tree={tree.value} page={shown} />
            {shown.drawing === "lines" && <Settings page={shown} />}
          </div>
        ) : null
      }
      details={page.open === null ? null : <RunDetails key={page.open} run={page.open} />}
    >
      <Frame source={tree} what="runs" isEmpty={({ rows }) => rows.length === 0} empty={<NoRuns />}>
        {(value) => <Comparison tree={value} page={shown} />}
      </Frame>
    </ViewLayout>
  );
}

const MOST_AT_FIRST = 24;

/** Where nothing is chosen: the newest experiment, so that the page is never bare. */
function withRuns(page: RunsPage, tree: RunTree | undefined): ShownPage {
  const first = tree?.experiments[0]?.workloads.flatMap((workload) => workload.runs) ?? [];
  return { ...page, runs: page.runs ?? first.slice(0, MOST_AT_FIRST) };
}

function Comparison({ tree, page }: { tree: RunTree; page: ShownPage }) {
  const place = useRef<HTMLElement>(null);
  const rows = useMemo(() => {
    const known = new Map(tree.rows.map((row) => [row.run, row]));
    return page.runs.flatMap((run) => known.get(run) ?? []);
  }, [tree, page.runs]);
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
        onPng={() => place.current && savePng(place.current, "runs.png")}
        onHtml={() => place.current && saveHtml(place.current, title, groups, quantities)}
      />
      {rows.length === 0 && <p className={styles.quiet}>Choose the runs to compare on the left.</p>}
      {page.drawing === "lines" && known && rows.length > 0 && (
        <LinesDrawing page={page} groups={groups} known={known} metrics={metrics} />
      )}
      {page.drawing === "bars" && (
        <>
          <Legend groups={groups} />
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
