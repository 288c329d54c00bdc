// Diagnosis of one workload: header, GPUs, findings, scatter plot and timeline. All share selection, brush and zoom.

import { useDeferredValue, useEffect, useMemo, useState } from "react";
import type { DiagnosisAnswer, RuleAnswer } from "../../api/generated.ts";
import type { TimeRange } from "../../charts/line-chart.tsx";
import { comparingOf, spanOf, useDiagnosis, useScatter } from "../../data/diagnosis.ts";
import { useRules } from "../../data/rules.ts";
import { HangButton } from "../../parts/hang/hang-button.tsx";
import { TraceButton } from "../../parts/traces/trace-button.tsx";
import { type DiagnosticsPage, diagnose } from "../../state/diagnostics.ts";
import { useChangeScreen, useScreenStore } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import { Frame } from "../../widgets/frame.tsx";
import { shortenUnits } from "./arrange.ts";
import { highlightPoints } from "./brushed.ts";
import { CompareMenu } from "./compare-menu.tsx";
import { Comparison } from "./comparison.tsx";
import styles from "./diagnosis-view.module.css";
import { Findings } from "./findings.tsx";
import { GpuPanel } from "./gpu-panel.tsx";
import { Head } from "./head.tsx";
import { chooseAxes, ScatterPanel } from "./scatter-panel.tsx";
import { findShownWindow } from "./shown.ts";
import { TimelinePanel } from "./timeline-panel.tsx";
import { mergeTimes } from "./timelines.ts";

const NO_RULES: readonly RuleAnswer[] = [];

export function DiagnosisView({ workload, page }: { workload: string; page: DiagnosticsPage }) {
  const change = useChangeScreen();
  const answer = useDiagnosis(workload, page);
  const list = useRules().value;
  const rules = list?.rules ?? NO_RULES;
  useDataNotices(answer.value, page);
  return (
    <main className={styles.view} aria-busy={!answer.isCurrent}>
      {answer.problem && answer.value === undefined && (
        <div className={styles.back}>
          <Button onClick={() => change(diagnose(null))}>Choose another workload</Button>
        </div>
      )}
      <Frame source={answer} what="the diagnosis">
        {(value) => (
          <>
            <Head answer={value} rules={rules}>
              <TraceButton workload={value.workload} />
              <HangButton workload={value.workload} />
              <CompareMenu answer={value} page={page} />
            </Head>
            {value.units.length === 0 ? (
              <p className={styles.none}>
                {value.notes[0] ?? "It has unitNames no GPUs, so there is nothing to diagnose."}
              </p>
            ) : page.compared ? (
              <Comparison answer={value} page={page} rules={rules} compared={page.compared} />
            ) : (
              <Panels answer={value} page={page} rules={rules} />
            )}
          </>
        )}
      </Frame>
    </main>
  );
}

/** Reports values of the link that the data does not have. */
function useDataNotices(answer: DiagnosisAnswer | undefined, page: DiagnosticsPage): void {
  const store = useScreenStore();
  useEffect(() => {
    if (answer && answer.units.length > 0) store.note(findLinkProblems(answer, page));
  }, [store, answer, page]);
}

export function findLinkProblems(
  { metrics, units, workload }: Pick<DiagnosisAnswer, "metrics" | "units" | "workload">,
  page: Pick<DiagnosticsPage, "x" | "y" | "lines" | "units">,
): readonly string[] {
  const metricNames = new Set(metrics.map(({ name }) => name));
  const unitNames = new Set(units.map(({ unit }) => unit));
  const requestedMetrics = [page.x, page.y, ...page.lines].filter((name) => name !== null);
  const unknownUnits = page.units.filter((unit) => !unitNames.has(unit));
  return [
    ...requestedMetrics
      .filter((name) => !metricNames.has(name))
      .map((name) => `The link names the metric ${name}, which has no samples here; it was ignored.`),
    ...(unknownUnits.length > 0
      ? [`The link selects ${unknownUnits.slice(0, 3).join(", ")}, which ${workload} does not hold; it was ignored.`]
      : []),
  ];
}

interface PanelsProps {
  readonly answer: DiagnosisAnswer;
  readonly page: DiagnosticsPage;
  readonly rules: readonly RuleAnswer[];
}

function Panels({ answer, page, rules }: PanelsProps) {
  const [pointed, setPointed] = useState<string | null>(null);
  const [drawn, setDrawn] = useState<TimeRange | null>(null);
  const range = useDeferredValue(drawn);
  const scatter = useScatter(answer.workload, {
    ...spanOf(page.window),
    ...comparingOf(page),
    ...chooseAxes(answer, page),
    units: useMemo(() => shortenUnits(page.units, answer.units), [page.units, answer.units]),
    isRobust: page.fit === "robust",
    significance: page.significance,
  });
  const highlighted = useMemo(
    () => (scatter.value ? highlightPoints(scatter.value, page.brush, range) : null),
    [scatter.value, page.brush, range],
  );
  const { startMs, endMs } = findShownWindow(answer, page);
  const spans = useMemo(
    () => (page.brush && highlighted ? mergeTimes(highlighted.timesMs, endMs - startMs) : []),
    [page.brush, highlighted, startMs, endMs],
  );
  return (
    <div className={styles.panels}>
      <div className={styles.gpus}>
        <GpuPanel answer={answer} page={page} rules={rules} onPoint={setPointed} />
      </div>
      <div className={styles.side}>
        <Findings answer={answer} />
        <ScatterPanel answer={answer} page={page} source={scatter} highlighted={highlighted} />
      </div>
      <div className={styles.timeline}>
        <TimelinePanel answer={answer} page={page} pointed={pointed} highlighted={spans} onDraw={setDrawn} />
      </div>
    </div>
  );
}
