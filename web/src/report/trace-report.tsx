// The report of a trace of a distributed run: why a step is slow, where its time goes, the graph of the typical step,
// and the evidence for the verdicts.

import { useMemo, useState } from "react";
import type { TraceAnswer } from "../api/generated.ts";
import { useSteps } from "../data/traces.ts";
import { INITIAL_PARALLEL, type NsWindow } from "../state/parallel.ts";
import { CauseStrip } from "../views/parallel/cause-strip.tsx";
import { RankSections } from "../views/parallel/details/ranks-pane.tsx";
import type { Drawn } from "../views/parallel/graph/drawn.ts";
import { GraphLegend } from "../views/parallel/graph/legend.tsx";
import { MareyGraph } from "../views/parallel/graph/marey-graph.tsx";
import { fitPage, hasNoSpans, makeScene, titleOf } from "../views/parallel/scene.ts";
import { StepStrip } from "../views/parallel/step-strip.tsx";
import { listSteps, type Step } from "../views/parallel/steps.ts";
import { describe, TraceFigures } from "../views/parallel/strip.tsx";
import { VerdictCards } from "../views/parallel/verdict-cards.tsx";
import { Frame } from "../widgets/frame.tsx";
import type { RecordedGraph, TraceAnswers } from "./document.ts";
import styles from "./report.module.css";

const HOW_TO_READ =
  "A band with a straight right edge and a slanted left edge waits for a straggler. Drag to zoom; double-click or press 0 to show the step again.";

export function TraceReport({ trace: answer, steps: recordedSteps, graph }: TraceAnswers) {
  const { row, report } = answer;
  const table = useSteps(row.trace_id, recordedSteps !== null);
  const steps = useMemo(() => (table.value ? listSteps(table.value) : []), [table.value]);
  return (
    <>
      <header className={styles.head}>
        <div>
          <h1>{row.name}</h1>
          <p>{describe(answer)}</p>
        </div>
        {report && !hasNoSpans(answer) && <TraceFigures report={report} />}
      </header>
      {hasNoSpans(answer) && <p className={styles.none}>Operator graph only: no times recorded.</p>}
      {report && !hasNoSpans(answer) && (
        <>
          <h2>Why</h2>
          <div className={styles.verdicts}>
            <VerdictCards report={report} notes={row.notes} />
          </div>
          {recordedSteps && (
            <div className={styles.steps}>
              <Frame source={table} what="the steps">
                {() => <StepStrip steps={steps} window={null} />}
              </Frame>
            </div>
          )}
          {table.value && answer.ranks.length > 1 && (
            <div className={styles.causes}>
              <CauseStrip report={report} steps={table.value} verdict={null} />
            </div>
          )}
          {graph && table.value && <Graph answer={answer} steps={steps} graph={graph} />}
          <div className={styles.sections}>
            <RankSections answer={answer} report={report} />
          </div>
        </>
      )}
      {hasNoSpans(answer) && row.notes.map((note) => <p key={note}>{note}</p>)}
    </>
  );
}

interface GraphProps {
  readonly answer: TraceAnswer;
  readonly steps: readonly Step[];
  readonly graph: RecordedGraph;
}

function Graph({ answer, steps, graph: { from_ns: fromNs, to_ns: toNs } }: GraphProps) {
  const [window, setWindow] = useState<NsWindow | null>(null);
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const page = useMemo(() => ({ ...fitPage(INITIAL_PARALLEL, answer), curve: null }), [answer]);
  // What was recorded is all there is to move in.
  const whole = useMemo(() => makeScene(answer, steps, { fromNs, toNs }), [answer, steps, fromNs, toNs]);
  const shown = window ?? whole.window;
  return (
    <>
      <h2>{titleOf(steps, whole)}</h2>
      {/* The wheel scrolls the report. */}
      <div className={styles.graph} onWheelCapture={(event) => event.stopPropagation()}>
        <MareyGraph
          trace={answer.row.trace_id}
          title={answer.row.name}
          page={page}
          {...whole}
          window={shown}
          extent={whole.window}
          curve={null}
          detailOf={() => null}
          ranksOf={() => []}
          onShown={(_stage, now) => setDrawn(now)}
          onWindow={setWindow}
          onReset={() => setWindow(null)}
          onAll={() => setWindow(null)}
          onHistory={() => {}}
          onSelect={() => {}}
          onToggle={() => {}}
        />
      </div>
      {drawn && <GraphLegend drawn={drawn} by={page.color} howToRead={HOW_TO_READ} />}
    </>
  );
}
