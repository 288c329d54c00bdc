// One trace: steps and verdicts, the graph, details of the selection, and hardware metrics. All share selection and window.

import { useMemo, useRef, useState } from "react";
import type { FlowNode, TraceAnswer, Verdict } from "../../api/generated.ts";
import type { MareyRow } from "../../api/marey.ts";
import { useInk } from "../../charts/canvas.tsx";
import { useCurves, useSteps, useTrace, useTraces } from "../../data/traces.ts";
import { changeParallel, isFlow, openTrace, type ParallelPage, toggleRow } from "../../state/parallel.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Frame } from "../../widgets/frame.tsx";
import { ViewLayout } from "../../widgets/view-layout.tsx";
import { ComparedGraph } from "./compared-graph.tsx";
import { DiffPanel } from "./diff-panel.tsx";
import { FlowView, type SaveFlow } from "./flow/flow-view.tsx";
import { CURVES, type CurveName, hasCurve } from "./graph/curves.ts";
import type { Drawn } from "./graph/drawn.ts";
import { type GraphFile, savePng, saveSvg } from "./graph/export.ts";
import { GraphLegend } from "./graph/legend.tsx";
import { readPaintTokens } from "./graph/look.ts";
import { type GraphActions, MareyGraph } from "./graph/marey-graph.tsx";
import type { GraphStage } from "./graph/stage.ts";
import { padWindow } from "./graph/windows.ts";
import { Hardware } from "./hardware.tsx";
import { Panes } from "./panes.tsx";
import styles from "./parallel.module.css";
import { fitPage, hasNoSpans, makeScene, type Scene, titleOf } from "./scene.ts";
import { Settings } from "./settings.tsx";
import { SpanTable } from "./span-table.tsx";
import { StepStrip } from "./step-strip.tsx";
import { listSteps, type Step, windowOf } from "./steps.ts";
import { ParallelStrip } from "./strip.tsx";
import { Toolbar } from "./toolbar.tsx";
import { ImportStatus } from "./traces/import-status.tsx";
import { TraceList } from "./traces/trace-list.tsx";
import { UploadBox } from "./traces/upload-box.tsx";
import { useWindows } from "./use-windows.ts";
import { VerdictCards } from "./verdict-cards.tsx";

interface ParallelViewProps {
  readonly trace: string;
  readonly page: ParallelPage;
  readonly workload: string | null;
}

const NO_STEPS: readonly Step[] = [];
const WHOLE = { fromNs: null, toNs: null };

export function ParallelView({ trace, page: requestedPage, workload }: ParallelViewProps) {
  const change = useChangeScreen();
  const answer = useTrace(trace);
  const table = useSteps(trace, answer.value?.report != null);
  const steps = useMemo(() => (table.value ? listSteps(table.value) : NO_STEPS), [table.value]);
  const page = useMemo(() => fitPage(requestedPage, answer.value), [requestedPage, answer.value]);
  const workloadId = workload ?? answer.value?.row.workload_id ?? null;
  const curves = useAvailableCurves(trace, answer.value);
  const scene = useMemo(
    () => (answer.value && table.value ? makeScene(answer.value, steps, page.window) : null),
    [answer.value, table.value, steps, page.window],
  );
  return (
    <ViewLayout
      strip={<ParallelStrip answer={answer.value} pane={page.pane} />}
      controls={
        <div className={styles.controls}>
          <TraceList workload={workloadId} current={trace} onOpen={(other) => change(openTrace(other))} />
          <UploadBox workload={workloadId} onStarted={() => {}} />
          {!isFlow(page.drawing) && answer.value?.report !== null && (
            <Settings page={page} curves={curves} isEstimated={answer.value?.report?.flops_source === "estimated"} />
          )}
        </div>
      }
      details={
        answer.value && scene && page.pane !== "none" && !isFlow(page.drawing) ? (
          <Panes
            answer={answer.value}
            page={page}
            window={scene.window}
            extent={scene.extent}
            originNs={scene.originNs}
          />
        ) : null
      }
      {...hardwareOf(answer.value, scene, page)}
    >
      <Frame source={answer} what="the trace">
        {(value) =>
          value.report === null ? (
            <ImportStatus row={value.row} onChoose={() => change(openTrace(null))} />
          ) : (
            <Frame source={table} what="the steps">
              {() => scene && <TraceContent answer={value} page={page} steps={steps} scene={scene} />}
            </Frame>
          )
        }
      </Frame>
    </ViewLayout>
  );
}

/** Hardware metrics only below the graph of one trace. */
function hardwareOf(answer: TraceAnswer | undefined, scene: Scene | null, { compared, drawing }: ParallelPage) {
  if (compared !== null || isFlow(drawing)) return {};
  const { workload_id: workload = null } = answer?.row ?? {};
  if (!answer || !scene || workload === null || answer.origin_ms === null) return {};
  return { time: <Hardware workload={workload} originMs={answer.origin_ms} window={scene.window} /> };
}

const PROBE_PIXELS = 100;

/** The curves that the trace has, from one coarse request for the whole trace. */
function useAvailableCurves(trace: string, answer: TraceAnswer | undefined): readonly CurveName[] {
  const curves = useCurves(trace, answer?.report && !hasNoSpans(answer) ? WHOLE : null, PROBE_PIXELS).value;
  return CURVES.filter((name) => hasCurve(curves, name));
}

interface TraceContentProps {
  readonly answer: TraceAnswer;
  readonly page: ParallelPage;
  readonly steps: readonly Step[];
  readonly scene: Scene;
}

function TraceContent({ answer, page, steps, scene }: TraceContentProps) {
  const change = useChangeScreen();
  const trace = answer.row.trace_id;
  const windows = useWindows(page);
  const others = (useTraces(null).value?.traces ?? []).filter(
    ({ trace_id, state }) => trace_id !== trace && state === "ready",
  );
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const [verdict, setVerdict] = useState<Verdict | null>(null);
  const { files, place, keep } = useFiles(answer, steps, scene);
  const compared = isFlow(page.drawing) ? null : page.compared;
  const savesFlow = useRef<SaveFlow | null>(null);
  const { window, extent } = scene;
  const set = (changes: Partial<ParallelPage>) => change(changeParallel(changes), "replace");
  const actions: GraphActions = {
    onWindow: windows.show,
    onReset: () => windows.show(null, true),
    onAll: () => windows.show(windowOf(steps, extent), true),
    onHistory: windows.go,
    onSelect: (span) =>
      set(span === null ? { span, pane: page.pane === "span" ? "none" : page.pane } : { span, pane: "span" }),
    onToggle: (row) => change(toggleRow(row)),
  };
  const showVerdict = (chosen: Verdict) => {
    setVerdict(chosen);
    const evidence = chosen.spans.filter(({ step }) => step === chosen.spans[0]?.step);
    const from = Math.min(...evidence.map(({ start_ns }) => start_ns));
    const to = Math.max(...evidence.map(({ end_ns }) => end_ns));
    windows.show(padWindow(from, to, 0.15, extent), true);
    set({ span: chosen.spans[0]?.span ?? null, pane: "span" });
  };
  const ranksOf = (stage: number | null) => answer.stages.find((other) => other.stage === stage)?.ranks ?? [];
  /** Expands a stage of several ranks, because the span belongs to one of them. */
  const showNode = ({ start_ns, end_ns, span }: FlowNode, stage: number | null) => {
    const isOpened = page.level === "stage" && stage !== null && ranksOf(stage).length > 1;
    windows.show(padWindow(start_ns ?? 0, end_ns ?? 0, 0.15, extent), true);
    set({
      drawing: "graph",
      span,
      pane: span === null ? "none" : "span",
      ...(isOpened ? { open: [...new Set([...page.open, String(stage)])] } : {}),
    });
  };
  return (
    <>
      {!hasNoSpans(answer) && compared === null && (
        <div className={styles.top}>
          <StepStrip steps={steps} window={window} onSteps={(chosen) => windows.show(windowOf(chosen, extent), true)} />
          {answer.report && <VerdictCards report={answer.report} shown={verdict} onShow={showVerdict} />}
        </div>
      )}
      <Toolbar
        page={page}
        title={isFlow(page.drawing) ? "Execution flow" : titleOf(steps, scene)}
        isTimed={!hasNoSpans(answer)}
        windows={windows}
        others={others}
        onAll={actions.onAll}
        onPng={() => (isFlow(page.drawing) ? savesFlow.current?.("png") : files((file) => savePng(file)))}
        onSvg={() => (isFlow(page.drawing) ? savesFlow.current?.("svg") : files((file) => saveSvg(file)))}
      />
      <div ref={place} className={styles.graphs} data-compared={compared !== null || undefined}>
        {/* Stays mounted behind the table, which shows the spans that the graph loaded. */}
        <div className={styles.one} hidden={page.drawing !== "graph"}>
          {!hasNoSpans(answer) && (
            <MareyGraph
              trace={trace}
              title={answer.row.name}
              page={page}
              {...scene}
              curve={page.curve}
              detailOf={detailOf(answer)}
              ranksOf={ranksOf}
              onShown={(stage, shown) => {
                keep(stage);
                setDrawn(shown);
              }}
              {...actions}
            />
          )}
        </div>
        {isFlow(page.drawing) && (
          <FlowView
            trace={trace}
            title={answer.row.name}
            page={page}
            saves={savesFlow}
            onChange={set}
            onShow={(node, stage) => showNode(node, stage)}
          />
        )}
        {page.drawing === "table" && drawn && (
          <SpanTable
            trace={trace}
            marey={drawn.marey}
            originNs={scene.originNs}
            text={page.text}
            selected={page.span}
            onSelect={actions.onSelect}
          />
        )}
        {compared !== null && (
          <ComparedGraph
            trace={compared}
            page={page}
            offsetNs={window.fromNs - scene.originNs}
            window={window}
            {...actions}
          />
        )}
      </div>
      {drawn && page.drawing === "graph" && <GraphLegend drawn={drawn} by={page.color} />}
      {compared !== null && <DiffPanel before={trace} after={compared} />}
    </>
  );
}

function detailOf({ stages, ranks, report }: TraceAnswer): (row: MareyRow) => string | null {
  const rankFacts = new Map(ranks.map((rank) => [rank.rank, rank]));
  return ({ depth, stage, rank }) => {
    if (depth === 0) {
      const members = stages.find((other) => other.stage === stage)?.ranks.length ?? 0;
      const bubble = stage === null ? undefined : report?.bubble?.stage_bubble_ratio[stage];
      return (
        [members > 1 ? `${members} ranks` : null, bubble === undefined ? null : `bubble ${Math.round(bubble * 100)} %`]
          .filter(Boolean)
          .join(" · ") || null
      );
    }
    const facts = rank === null ? undefined : rankFacts.get(rank);
    return depth === 1 ? (facts?.unit ?? facts?.device ?? null) : null;
  };
}

/** Saves the graph as a file. */
function useFiles(answer: TraceAnswer, steps: readonly Step[], scene: Scene) {
  const ink = useInk();
  const place = useRef<HTMLDivElement>(null);
  const stage = useRef<GraphStage | null>(null);
  const files = (save: (file: GraphFile) => void) => {
    if (stage.current === null || place.current === null) return;
    save({
      stage: stage.current,
      title: `${answer.row.name} · ${titleOf(steps, scene)}`,
      originNs: scene.originNs,
      tokens: readPaintTokens(ink),
      ink,
      place: place.current,
    });
  };
  return {
    files,
    place,
    keep: (newStage: GraphStage) => {
      stage.current = newStage;
    },
  };
}
