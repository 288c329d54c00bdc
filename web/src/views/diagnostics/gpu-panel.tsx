// One small plot per GPU: histogram or timeline, in the color of its cluster, arranged by node, rank or cluster; or a table.

import { useMemo, useState } from "react";
import type { Histograms } from "../../api/diagnosis-client.ts";
import type { DiagnosedUnit, DiagnosisAnswer, RuleAnswer } from "../../api/generated.ts";
import type { SeriesLine } from "../../api/series.ts";
import { downloadText } from "../../base/download.ts";
import { formatCount } from "../../base/format.ts";
import type { Level } from "../../charts/multiples-layout.ts";
import { type SelectMode, SmallMultiples, type SmallPlot } from "../../charts/small-multiples.tsx";
import { spanOf, useHistograms, useLines } from "../../data/diagnosis.ts";
import { colorRules, type RuleColors, toCssColor } from "../../parts/rules/rule-colors.ts";
import { ARRANGEMENTS, type Arrangement, type DiagnosticsPage, type Plot } from "../../state/diagnostics.ts";
import { Frame } from "../../widgets/frame.tsx";
import { arrange, isAvailable, shortenUnits } from "./arrange.ts";
import { Choice } from "./choice.tsx";
import { clusterColor } from "./cluster-colors.ts";
import { ClusterLegend } from "./cluster-legend.tsx";
import { ClusterMenu } from "./cluster-menu.tsx";
import { describeUnit, scaleBars } from "./distributions.ts";
import styles from "./gpu-panel.module.css";
import { PanelBox } from "./panel-box.tsx";
import { findShownWindow, useIsRecorded, useSetPage } from "./shown.ts";
import { MAX_REQUESTED } from "./timeline-shapes.ts";
import { fillGaps, findDomain, toGrid } from "./timelines.ts";
import { toCsv, UnitTable } from "./unit-table.tsx";
import { describeRank, findMetric, formatValue } from "./words.ts";

const ARRANGEMENT_TITLES: Readonly<Record<Arrangement, string>> = {
  node: "node, GPU index",
  global_rank: "global rank",
  local_rank: "local rank",
  cluster: "cluster",
};
const PLOT_OPTIONS: readonly { value: Plot; title: string }[] = [
  { value: "histogram", title: "histogram" },
  { value: "timeline", title: "timeline" },
  { value: "table", title: "table" },
];
/** Points of a small timeline. */
const STEPS = 60;

interface GpuPanelProps {
  readonly answer: DiagnosisAnswer;
  readonly page: DiagnosticsPage;
  readonly rules: readonly RuleAnswer[];
  /** Shown in the heading of a comparison. */
  readonly subject?: string;
  onPoint?(unit: string | null): void;
}

export function GpuPanel({ answer, page, rules, subject, onPoint }: GpuPanelProps) {
  const set = useSetPage();
  const isRecorded = useIsRecorded();
  const metric = findMetric(answer.metrics, answer.metric);
  const source = usePlots(answer, page, rules);
  const [level, setLevel] = useState<Level>("plot");
  const file = `${answer.workload}-gpus`.replaceAll(/[^\w-]+/g, "-");
  const histograms = source.value?.histograms;
  const title = `${metric?.label ?? "GPUs"}${subject ? `, ${subject}` : ", one plot per GPU"}`;
  const tools = (
    <>
      {!isRecorded && (
        <>
          <Choice
            label="Metric"
            value={answer.metric ?? ""}
            options={answer.metrics.map(({ name, label, has_samples }) => ({
              value: name,
              title: label,
              isDisabled: !has_samples,
            }))}
            onChange={(name) => set({ metric: name })}
          />
          <ClusterMenu answer={answer} page={page} />
        </>
      )}
      <Choice
        label="Arrange by"
        prefix="by"
        value={page.arrangement}
        options={ARRANGEMENTS.map((value) => ({
          value,
          title: ARRANGEMENT_TITLES[value],
          isDisabled: !isAvailable(answer.units, value),
        }))}
        onChange={(arrangement) => set({ arrangement })}
      />
      <Choice
        label="Display as"
        value={page.plot}
        options={PLOT_OPTIONS.map((option) => ({
          ...option,
          isDisabled: isRecorded && option.value === "timeline" && answer.units.length > MAX_REQUESTED,
        }))}
        onChange={(plot) => set({ plot })}
      />
    </>
  );
  return (
    <PanelBox
      title={title}
      tools={tools}
      file={file}
      hasPicture={page.plot !== "table"}
      onCsv={histograms ? () => downloadText(`${file}.csv`, toCsv(answer, histograms), "text/csv") : undefined}
    >
      <ClusterLegend answer={answer} page={page} />
      <div className={styles.body}>
        {answer.metric === null ? (
          <p className={styles.none}>{answer.notes[0] ?? "No samples in this window."}</p>
        ) : (
          <Frame source={source} what="the GPUs">
            {(drawn) =>
              page.plot === "table" ? (
                <UnitTable answer={answer} page={page} histograms={drawn.histograms} />
              ) : (
                <Plots
                  answer={answer}
                  page={page}
                  rules={rules}
                  drawn={drawn}
                  onLevel={setLevel}
                  {...(onPoint ? { onPoint } : {})}
                />
              )
            }
          </Frame>
        )}
      </div>
      {source.value && page.plot !== "table" && answer.metric !== null && (
        <AxisNote drawn={source.value} unit={metric?.unit} plot={page.plot} level={level} />
      )}
    </PanelBox>
  );
}

interface Drawn {
  readonly plots: readonly SmallPlot[];
  readonly histograms: Histograms | null;
  readonly low: number;
  readonly high: number;
}

function usePlots(answer: DiagnosisAnswer, page: DiagnosticsPage, rules: readonly RuleAnswer[]) {
  const { workload, metric, units } = answer;
  const { startMs, endMs } = findShownWindow(answer, page);
  const isTimeline = page.plot === "timeline";
  const histograms = useHistograms(workload, metric, page.window, !isTimeline);
  const names = useMemo(
    () =>
      shortenUnits(
        units.map(({ unit }) => unit),
        units,
      ),
    [units],
  );
  const lines = useLines(
    workload,
    { ...spanOf(page.window), metrics: metric ? [metric] : [], units: names, points: STEPS, summary: "none" },
    isTimeline,
  );
  const unit = findMetric(answer.metrics, metric)?.unit ?? "";
  const fromHistograms = useMemo(
    () => histograms.value && drawHistograms(answer, histograms.value, rules),
    [answer, histograms.value, rules],
  );
  const fromLines = useMemo(
    () => lines.value && drawLines(answer, lines.value, rules, { startMs, endMs }, unit),
    [answer, lines.value, rules, startMs, endMs, unit],
  );
  return isTimeline ? { ...lines, value: fromLines } : { ...histograms, value: fromHistograms };
}

function drawHistograms(answer: DiagnosisAnswer, histograms: Histograms, rules: readonly RuleAnswer[]): Drawn {
  const bars = scaleBars(histograms);
  const range = histograms.high - histograms.low || 1;
  const plots = toPlots(answer, rules, ({ unit }) => {
    const { median } = describeUnit(histograms, unit);
    return { values: bars.get(unit) ?? [], level: median === null ? null : (median - histograms.low) / range };
  });
  return { plots, histograms, low: histograms.low, high: histograms.high };
}

function drawLines(
  answer: DiagnosisAnswer,
  lines: readonly SeriesLine[],
  rules: readonly RuleAnswer[],
  { startMs, endMs }: { readonly startMs: number; readonly endMs: number },
  unit: string,
): Drawn {
  const [low, high] = findDomain(lines, unit);
  const steps = Math.min(STEPS, Math.max(2, ...lines.map(({ timesMs }) => timesMs.length)));
  const byUnit = new Map(lines.map((line) => [line.unit, line]));
  const plots = toPlots(answer, rules, ({ unit: name }) => {
    const line = byUnit.get(name);
    if (!line) return { values: [], level: null };
    const grid = fillGaps(toGrid(line, startMs, endMs, steps));
    const values = grid.map((value) => (value - low) / (high - low || 1));
    const finite = values.filter((value) => !Number.isNaN(value));
    const mean = finite.reduce((sum, value) => sum + value, 0) / finite.length;
    return { values: finite.length > 0 ? values : [], level: finite.length > 0 ? mean : null };
  });
  return { plots, histograms: null, low, high };
}

function toPlots(
  { units, odd }: DiagnosisAnswer,
  rules: readonly RuleAnswer[],
  drawUnit: (unit: DiagnosedUnit) => Pick<SmallPlot, "values" | "level">,
): readonly SmallPlot[] {
  const colors = colorRules(rules);
  const oddUnits = new Set(odd.map(({ unit }) => unit));
  return units.map((unit) => ({
    key: unit.unit,
    color: clusterColor(unit.cluster),
    marks: listMarks(unit, rules, colors),
    isOdd: oddUnits.has(unit.unit),
    ...drawUnit(unit),
  }));
}

/** In the order of the rule bar. */
function listMarks(unit: DiagnosedUnit, rules: readonly RuleAnswer[], colors: RuleColors) {
  return rules.flatMap(({ key, is_enabled }) => {
    const violation = is_enabled && unit.rules.find(({ rule }) => rule === key);
    return violation ? [{ color: toCssColor(colors, key), isPast: violation.state === "past" }] : [];
  });
}

function Plots(props: GpuPanelProps & { drawn: Drawn; onLevel: (level: Level) => void }) {
  const { answer, page, rules, drawn, onPoint, onLevel } = props;
  const set = useSetPage();
  const groups = useMemo(() => arrange(answer.units, page.arrangement), [answer.units, page.arrangement]);
  const selected = useMemo(() => {
    const selectedUnits = new Set(page.units);
    return new Set(answer.units.flatMap(({ unit }, at) => (selectedUnits.has(unit) ? [at] : [])));
  }, [page.units, answer.units]);
  const onSelect = (plots: readonly number[], mode: SelectMode) => {
    const names = plots.flatMap((at) => answer.units[at]?.unit ?? []);
    set({ units: combine(page.units, names, mode, answer.units.length) });
  };
  return (
    <SmallMultiples
      label={describePanel(answer, page)}
      kind={page.plot === "timeline" ? "line" : "bars"}
      plots={drawn.plots}
      groups={groups}
      selected={selected}
      say={(at) => {
        const unit = answer.units[at];
        return unit && <UnitTooltip unit={unit} answer={answer} rules={rules} drawn={drawn} />;
      }}
      onSelect={onSelect}
      onLevel={onLevel}
      onPoint={(at) => onPoint?.(at === null ? null : (answer.units[at]?.unit ?? null))}
    />
  );
}

export function combine(
  selected: readonly string[],
  names: readonly string[],
  mode: SelectMode,
  total: number,
): readonly string[] {
  if (mode === "replace") {
    // A second click on the only selected GPU deselects it.
    const isSame = names.length === 1 && selected.length === 1 && names[0] === selected[0];
    return isSame || names.length === total ? [] : names;
  }
  const next = new Set(selected);
  for (const name of names) {
    if (mode === "toggle" && next.has(name)) next.delete(name);
    else next.add(name);
  }
  return next.size === total ? [] : [...next];
}

function describePanel({ units, clusters, metric, metrics }: DiagnosisAnswer, page: DiagnosticsPage): string {
  const sizes = clusters.map(({ size }) => formatCount(size)).join(" and ");
  return [
    `${formatCount(units.length)} plots of ${findMetric(metrics, metric)?.label ?? "GPUs"}`,
    `${clusters.length === 1 ? "one cluster" : `${clusters.length} clusters of ${sizes} GPUs`}`,
    `arranged by ${ARRANGEMENT_TITLES[page.arrangement]}`,
    "arrow keys move, Space selects, Escape clears",
  ].join("; ");
}

interface UnitTooltipProps {
  readonly unit: DiagnosedUnit;
  readonly answer: DiagnosisAnswer;
  readonly rules: readonly RuleAnswer[];
  readonly drawn: Drawn;
}

function UnitTooltip({ unit, answer, rules, drawn }: UnitTooltipProps) {
  const metric = findMetric(answer.metrics, answer.metric);
  const odd = answer.odd.find((oddUnit) => oddUnit.unit === unit.unit);
  const statistics = drawn.histograms && describeUnit(drawn.histograms, unit.unit);
  const broken = rules.filter(({ key }) => unit.rules.some(({ rule, state }) => rule === key && state === "now"));
  return (
    <div className={styles.words}>
      <b>{unit.unit}</b>
      <span>{describeRank(unit)}</span>
      {statistics?.median != null && (
        <span>
          median <em>{formatValue(statistics.median, metric?.unit)}</em>, p5 {formatValue(statistics.p5, metric?.unit)},
          p95 {formatValue(statistics.p95, metric?.unit)}
        </span>
      )}
      <span>
        <i data-swatch={true} style={{ background: clusterColor(unit.cluster) }} />{" "}
        {unit.cluster === null ? "not compared: too few samples" : `cluster ${unit.cluster + 1}`}
      </span>
      {odd && <span>{odd.sentence}</span>}
      {broken.length > 0 && <span>breaks {broken.map(({ name }) => name).join(", ")}</span>}
    </div>
  );
}

interface AxisNoteProps {
  readonly drawn: Drawn;
  readonly unit: string | undefined;
  readonly plot: Plot;
  readonly level: Level;
}

function AxisNote({ drawn, unit, plot, level }: AxisNoteProps) {
  const [low, high] = [formatValue(drawn.low, unit), formatValue(drawn.high, unit)];
  return (
    <p className={styles.axis} data-drawn-label={true}>
      {describeAxis(plot, level, low, high)}
    </p>
  );
}

function describeAxis(plot: Plot, level: Level, low: string, high: string): string {
  const isTimeline = plot === "timeline";
  if (level === "cell") return `Brighter is a higher ${isTimeline ? "mean" : "median"}, from ${low} to ${high}.`;
  if (level === "strip") {
    return isTimeline
      ? `Each strip is the time from left to right; brighter is higher, from ${low} to ${high}.`
      : `Each strip is ${low} (left) to ${high} (right); brighter is a larger share of the time.`;
  }
  return isTimeline
    ? `All plots from ${low} (bottom) to ${high} (top), over the same time.`
    : `All plots from ${low} (left) to ${high} (right); height is the square root of the share of time.`;
}
