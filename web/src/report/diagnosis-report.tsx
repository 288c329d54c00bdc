// The report of a diagnosis: findings, clusters, timelines, and a plot of each GPU. GPUs can be selected and arranged
// as on the page; controls that need a server are hidden.

import { type CSSProperties, useState } from "react";
import type { DiagnosisAnswer, RuleAnswer } from "../api/generated.ts";
import { formatDuration, formatExact } from "../base/time.ts";
import { type DiagnosticsPage, INITIAL_DIAGNOSTICS } from "../state/diagnostics.ts";
import { ClusterList } from "../views/diagnostics/cluster-list.tsx";
import { Findings } from "../views/diagnostics/findings.tsx";
import { GpuPanel } from "../views/diagnostics/gpu-panel.tsx";
import { Head } from "../views/diagnostics/head.tsx";
import { RecordedContext, SetPageContext } from "../views/diagnostics/shown.ts";
import { TimelinePanel } from "../views/diagnostics/timeline-panel.tsx";
import styles from "./report.module.css";

const NO_RULES: readonly RuleAnswer[] = [];
const MOST_ODD = 24;
/** Pixels of a metric's row in the timeline, and of what stands around the rows. */
const ROW_PX = 96;
const AROUND_PX = 110;

interface DiagnosisReportProps {
  readonly answer: DiagnosisAnswer;
  /** Those whose course was recorded. */
  readonly metrics: readonly string[];
}

export function DiagnosisReport({ answer, metrics }: DiagnosisReportProps) {
  const [page, setPage] = useState(() => openPage(answer, metrics));
  const [pointed, setPointed] = useState<string | null>(null);
  const set = (changes: Partial<DiagnosticsPage>) => setPage((last) => ({ ...last, ...keepRecorded(changes) }));
  return (
    <RecordedContext value={true}>
      <SetPageContext value={set}>
        <Head answer={answer} rules={NO_RULES} />
        <p className={styles.about}>{describeWindow(answer)}</p>
        {answer.units.length === 0 ? (
          <p className={styles.none}>
            {answer.notes[0] ?? "It has not held any GPU, so there is nothing to diagnose."}
          </p>
        ) : (
          <>
            <div className={styles.pair}>
              <Findings answer={answer} mostOdd={MOST_ODD} />
              <ClusterList answer={answer} page={page} />
            </div>
            {metrics.length > 0 && (
              <div
                className={styles.sized}
                style={{ "--height": `${AROUND_PX + page.lines.length * ROW_PX}px` } as CSSProperties}
              >
                <TimelinePanel answer={answer} page={page} pointed={pointed} canLeave={false} />
              </div>
            )}
            <div className={styles.sized} style={{ "--height": `${plotsHeight(answer)}px` } as CSSProperties}>
              <GpuPanel answer={answer} page={page} rules={NO_RULES} onPoint={setPointed} />
            </div>
          </>
        )}
      </SetPageContext>
    </RecordedContext>
  );
}

/** As the answer was asked for. */
export function openPage(
  { workload, metric, window, by }: Pick<DiagnosisAnswer, "workload" | "metric" | "window" | "by">,
  lines: readonly string[],
): DiagnosticsPage {
  return {
    ...INITIAL_DIAGNOSTICS,
    workload,
    metric,
    distance: by,
    window: window && { fromMs: window.start, toMs: window.end },
    lines,
  };
}

/** Selecting and arranging needs no other answer; a metric or a window would. */
export function keepRecorded({ units, arrangement, plot }: Partial<DiagnosticsPage>): Partial<DiagnosticsPage> {
  return { ...(units && { units }), ...(arrangement && { arrangement }), ...(plot && { plot }) };
}

function describeWindow({ window, partition, state, energy_from, energy_joules }: DiagnosisAnswer): string {
  return [
    partition && `partition ${partition}`,
    state.replaceAll("_", " "),
    window && `${formatDuration((window.end - window.start) / 1000)} from ${formatExact(window.start)}`,
    energy_joules === null ? null : `energy ${energy_from === "counter" ? "by the GPUs' counters" : "from mean power"}`,
  ]
    .filter(Boolean)
    .join(" · ");
}

const LEAST_PX = 260;
const MOST_PX = 900;

/** Room for a readable plot of each GPU, as long as that is one screen. */
export function plotsHeight({ units }: Pick<DiagnosisAnswer, "units">): number {
  const nodes = new Set(units.map(({ node }) => node)).size;
  const rows = Math.max(nodes, Math.ceil(units.length / 8));
  return Math.min(MOST_PX, Math.max(LEAST_PX, 130 + rows * 58));
}
