// One trace: steps and verdicts, the graph, details of the selection, and hardware metrics. All share selection and window.

import { useMemo, useRef, useState } from "react";
import type { FlowNode, TraceAnswer } from "../../api/generated.ts";
import type { MareyRow } from "../../api/marey.ts";
import type { TraceSteps } from "../../api/traces-client.ts";
import { useInk } from "../../charts/canvas.tsx";
import { useCurves, useHighlights, useSteps, useTrace, useTraces } from "../../data/traces.ts";
import {
  changeParallel,
  isFlow,
  type NsWindow,
  openTrace,
  type ParallelPage,
  showsGraph,
  toggleRow,
} from "../../state/parallel.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Frame } from "../../widgets/frame.tsx";
import { ViewLayout } from "../../widgets/view-layout.tsx";
import { CauseStrip } from "./cause-strip.tsx";
import { ComparedGraph } from "./compared-graph.tsx";
import { DiffPanel } from "./diff-panel.tsx";
import { FlowView, type SaveFlow } from "./flow/flow-view.tsx";
import { CURVES, type CurveName, hasCurve } from "./graph/curves.ts";
import type { Drawn } from "./graph/drawn.ts";
import { type GraphFile, savePng, saveSvg } from "./graph/export.ts";
import { type HighlightMark, listOccurrences, markOperators, markVerdict } from "./graph/highlight.ts";
import { GraphLegend } from "./graph/legend.tsx";
import { readPaintTokens } from "./graph/look.ts";
import { type GraphActions, MareyGraph } from "./graph/marey-graph.tsx";
import type { GraphStage } from "./graph/stage.ts";
import { padWindow } from "./graph/windows.ts";
import { Hardware } from "./hardware.tsx";
import { OverviewStrip } from "./overview-strip.tsx";
import { Panes } from "./panes.tsx";
import styles from "./parallel.module.css";
import { fitPage, hasNoSpans, makeScene, type Scene, titleOf } from "./scene.ts";
import { Settings } from "./settings.tsx";
import { SpanTable } from "./span-table.tsx";
import { StepStrip } from "./step-strip.tsx";
import { findShownSteps, listSteps, type Step, windowOf } from "./steps.ts";
import { ParallelStrip } from "./strip.tsx";
import { Toolbar } from "./toolbar.tsx";
import { ImportStatus } from "./traces/import-status.tsx";
import { TraceList } from "./traces/trace-list.tsx";
import { UploadBox } from "./traces/upload-box.tsx";
import { useWindows } from "./use-windows.ts";
import { causeColor, VerdictCards } from "./verdict-cards.tsx";

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
              {(times) =>
                scene && <TraceContent answer={value} page={page} times={times} steps={steps} scene={scene} />
              }
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
  readonly times: TraceSteps;
  readonly steps: readonly Step[];
  readonly scene: Scene;
}

function TraceContent({ answer, page, times, steps, scene }: TraceContentProps) {
  const change = useChangeScreen();
  const trace = answer.row.trace_id;
  const windows = useWindows(page);
  const others = (useTraces(null).value?.traces ?? []).filter(
    ({ trace_id, state }) => trace_id !== trace && state === "ready",
  );
  const [drawn, setDrawn] = useState<Drawn | null>(null);
  const { files, place, keep } = useFiles(answer, steps, scene);
  const compared = isFlow(page.drawing) || page.drawing === "both" ? null : page.compared;
  const highlight = useHighlight(answer, page, scene.window);
  const savesFlow = useRef<SaveFlow | null>(null);
  const { window, extent } = scene;
  const set = (changes: Partial<ParallelPage>) => change(changeParallel(changes), "replace");
  const actions: GraphActions = {
    onWindow: windows.show,
    onReset: () => windows.show(null, true),
    onAll: () => windows.show(windowOf(steps, extent), true),
    onHistory: windows.go,
    onSelect: (span) =>
      set({
        span,
        nodes: [],
        verdict: null,
        pane: span !== null ? "span" : page.pane === "span" ? "none" : page.pane,
      }),
    onToggle: (row) => change(toggleRow(row)),
  };
  const ranksOf = (stage: number | null) => answer.stages.find((other) => other.stage === stage)?.ranks ?? [];
  const openRows = (ranks: readonly number[]) => {
    const stages = answer.stages.filter(
      (stage) => stage.stage !== null && stage.ranks.length > 1 && stage.ranks.some((rank) => ranks.includes(rank)),
    );
    return page.level === "stage"
      ? [...new Set([...page.open, ...stages.map(({ stage }) => String(stage))])]
      : page.open;
  };
  const showVerdict = (at: number) => {
    if (at === page.verdict) {
      set({ verdict: null });
      return;
    }
    const places = findPlaces(answer, at);
    const [worst] = places.toSorted((a, b) => b.toNs - b.fromNs - (a.toNs - a.fromNs));
    const inStep = places.filter(({ step }) => step === worst?.step);
    const from = Math.min(...inStep.map(({ fromNs }) => fromNs));
    const to = Math.max(...inStep.map(({ toNs }) => toNs));
    windows.show(padWindow(from, to, 0.15, extent), true);
    const [span] = answer.report?.verdicts[at]?.spans ?? [];
    const drawing = showsGraph(page.drawing) ? page.drawing : "graph";
    const open = openRows(inStep.map(({ rank }) => rank));
    set({ drawing, open, verdict: at, nodes: [], ...(span ? { span: span.span, pane: "span" } : {}) });
  };
  const showCell = (rank: number, step: number, verdict: number | null) => {
    windows.show(
      windowOf(
        steps.filter((other) => other.step === step),
        extent,
      ),
      true,
    );
    set({ drawing: showsGraph(page.drawing) ? page.drawing : "graph", open: openRows([rank]), verdict, nodes: [] });
  };
  /** Expands a stage of several ranks, because the span belongs to one of them. */
  const showNode = ({ start_ns, end_ns, span }: FlowNode, stage: number | null) => {
    const isOpened = page.level === "stage" && stage !== null && ranksOf(stage).length > 1;
    windows.show(padWindow(start_ns ?? 0, end_ns ?? 0, 0.15, extent), true);
    set({
      drawing: page.drawing === "both" ? "both" : "graph",
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
          {answer.report && answer.ranks.length > 1 && (
            <CauseStrip report={answer.report} steps={times} verdict={page.verdict} onCell={showCell} />
          )}
          {answer.report && (
            <VerdictCards report={answer.report} notes={answer.row.notes} shown={page.verdict} onShow={showVerdict} />
          )}
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
      {!hasNoSpans(answer) && showsGraph(page.drawing) && compared === null && (
        <OverviewStrip
          trace={trace}
          steps={steps}
          window={window}
          extent={extent}
          onWindow={(next) => windows.show(next, false)}
        />
      )}
      <div
        ref={place}
        className={styles.graphs}
        data-compared={compared !== null || undefined}
        data-both={page.drawing === "both" || undefined}
      >
        {/* Stays mounted behind the table, which shows the spans that the graph loaded. */}
        <div className={styles.one} hidden={!showsGraph(page.drawing)}>
          {!hasNoSpans(answer) && (
            <MareyGraph
              trace={trace}
              title={answer.row.name}
              page={page}
              {...scene}
              curve={page.curve}
              highlight={highlight}
              onCut={() => windows.show(wholeOf(steps, scene), true)}
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
        {(isFlow(page.drawing) || page.drawing === "both") && (
          <FlowView
            // Alone it shows where a span is, next to a graph it follows it.
            key={page.drawing === "both" ? "both" : "alone"}
            trace={trace}
            title={answer.row.name}
            page={page}
            window={page.drawing === "both" ? window : null}
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
      {drawn && showsGraph(page.drawing) && <GraphLegend drawn={drawn} by={page.color} />}
      {compared !== null && <DiffPanel before={trace} after={compared} />}
    </>
  );
}

interface Place extends NsWindow {
  readonly rank: number;
  readonly step: number | null;
}

/** Where a verdict's cause acts; its evidence if the report does not say. */
function findPlaces({ report }: TraceAnswer, at: number): readonly Place[] {
  const verdict = report?.verdicts[at];
  if (!verdict) return [];
  const evidence = verdict.spans.map(({ rank, step, start_ns, end_ns }) => ({
    rank,
    step,
    fromNs: start_ns,
    toNs: end_ns,
  }));
  const acts = listOccurrences(verdict);
  return acts.length > 0
    ? acts.map(({ rank, step, startNs, endNs }) => ({ rank, step, fromNs: startNs, toNs: endNs }))
    : evidence;
}

/** The steps of a window with the idle time around them. */
function wholeOf(steps: readonly Step[], { window, extent }: Scene): NsWindow {
  const shown = findShownSteps(steps, window);
  const [first, last] = shown === null ? [] : [steps[shown[0]], steps[shown[1]]];
  return {
    fromNs: first && first !== steps[0] ? first.fromNs : extent.fromNs,
    toNs: last && last !== steps.at(-1) ? last.toNs : extent.toNs,
  };
}

const HIGHLIGHT_PIXELS = 1400;

/** What the verdict or the nodes that are chosen highlight in the graph; null: none are. */
function useHighlight(answer: TraceAnswer, page: ParallelPage, window: NsWindow): readonly HighlightMark[] | null {
  const { nodes, flow, verdict } = page;
  const query = useMemo(() => {
    const margin = (window.toNs - window.fromNs) / 2;
    const range = { fromNs: Math.max(0, Math.floor(window.fromNs - margin)), toNs: Math.ceil(window.toNs + margin) };
    return nodes.length > 0 ? { open: flow, nodes, ...range, pixels: HIGHLIGHT_PIXELS } : null;
  }, [nodes, flow, window]);
  const times = useHighlights(answer.row.trace_id, query).value;
  const chosen = verdict === null ? undefined : answer.report?.verdicts[verdict];
  return useMemo(() => {
    if (chosen && verdict !== null) return markVerdict(chosen, causeColor(verdict));
    return query !== null && times ? markOperators(times) : null;
  }, [chosen, verdict, query, times]);
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
