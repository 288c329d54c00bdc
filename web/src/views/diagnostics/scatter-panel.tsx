// Scatter plot of two metrics with outliers. A brush selects points; their times are highlighted on the timeline.

import { useMemo } from "react";
import type { Scatter } from "../../api/diagnosis-client.ts";
import type { DiagnosedMetric, DiagnosisAnswer } from "../../api/generated.ts";
import { formatCount, formatPlural } from "../../base/format.ts";
import type { Loadable } from "../../base/loadable.ts";
import { listNumbers } from "../../charts/scales.ts";
import { ScatterChart } from "../../charts/scatter-chart.tsx";
import { changeDiagnostics, type DiagnosticsPage, SIGNIFICANCES } from "../../state/diagnostics.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import { Frame } from "../../widgets/frame.tsx";
import { boundOutliers, compareThen, findBounds, type HighlightedPoints } from "./brushed.ts";
import { Choice } from "./choice.tsx";
import { clusterColor } from "./cluster-colors.ts";
import { PanelBox } from "./panel-box.tsx";
import styles from "./scatter-panel.module.css";
import { findMetric, formatValue } from "./words.ts";

/** The requested metrics; by default power by GPU utilization. */
export function chooseAxes({ metrics }: DiagnosisAnswer, page: DiagnosticsPage) {
  const available = metrics.filter(({ has_samples }) => has_samples).map(({ name }) => name);
  const pick = (requested: string | null, preferred: string, other: number) =>
    (requested !== null && available.includes(requested) && requested) ||
    (available.includes(preferred) && preferred) ||
    available[other] ||
    null;
  return { x: pick(page.x, "gpu_util_ratio", 0), y: pick(page.y, "power_watts", 1) };
}

interface ScatterPanelProps {
  readonly answer: DiagnosisAnswer;
  readonly page: DiagnosticsPage;
  readonly source: Loadable<Scatter>;
  readonly highlighted: HighlightedPoints | null;
}

export function ScatterPanel({ answer, page, source, highlighted }: ScatterPanelProps) {
  const change = useChangeScreen();
  const set = (changes: Partial<DiagnosticsPage>, isSmall = false) =>
    change(changeDiagnostics(changes), isSmall ? "replace" : "push");
  const axes = chooseAxes(answer, page);
  const [x, y] = [findMetric(answer.metrics, axes.x), findMetric(answer.metrics, axes.y)];
  const options = answer.metrics.map(({ name, label, has_samples }) => ({
    value: name,
    title: label,
    isDisabled: !has_samples,
  }));
  const tools = (
    <>
      <label
        className={styles.slider}
        data-tip="Points with a smaller probability under a Gaussian distribution are outliers"
      >
        χ² {formatSignificance(page.significance)}
        <input
          type="range"
          aria-label="Significance of outliers"
          aria-valuetext={formatSignificance(page.significance)}
          min={0}
          max={SIGNIFICANCES.length - 1}
          value={Math.max(0, (SIGNIFICANCES as readonly number[]).indexOf(page.significance))}
          onChange={(event) => set({ significance: SIGNIFICANCES[Number(event.target.value)] ?? 0.001 }, true)}
        />
      </label>
      <Choice
        label="Fit"
        value={page.fit}
        options={[
          { value: "robust", title: "robust" },
          { value: "classic", title: "classic" },
        ]}
        onChange={(fit) => set({ fit })}
      />
    </>
  );
  return (
    <PanelBox
      title="Two metrics"
      tools={tools}
      file={`${answer.workload}-scatter`.replaceAll(/[^\w-]+/g, "-")}
      className={styles.panel}
    >
      <div className={styles.tools}>
        <Choice
          label="Vertical axis"
          value={axes.y ?? ""}
          options={options}
          onChange={(name) => set({ y: name, brush: null })}
        />
        <Choice
          label="Horizontal axis"
          prefix="by"
          value={axes.x ?? ""}
          options={options}
          onChange={(name) => set({ x: name, brush: null })}
        />
        {source.value && source.value.outliers > 0 && !page.brush && (
          <Button className={styles.small} onClick={() => source.value && set({ brush: boundOutliers(source.value) })}>
            Brush outliers
          </Button>
        )}
        {page.brush && (
          <>
            {highlighted && highlighted.units.length > 0 && highlighted.units.length < answer.units.length && (
              <Button className={styles.small} onClick={() => set({ units: highlighted.units })}>
                Select {formatPlural(highlighted.units.length, "GPU")}
              </Button>
            )}
            <Button className={styles.small} onClick={() => set({ brush: null })}>
              Clear brush
            </Button>
          </>
        )}
      </div>
      <div className={styles.body}>
        {axes.x === null || axes.y === null ? (
          <p className={styles.note}>Fewer than two metrics have samples here.</p>
        ) : (
          <Frame
            source={source}
            what="the points"
            isEmpty={(all) => all.x.length === 0}
            empty="No points in this window."
          >
            {(scatter) => (
              <Points
                scatter={scatter}
                answer={answer}
                page={page}
                highlighted={highlighted}
                x={x}
                y={y}
                onBrush={(brush) => set({ brush })}
              />
            )}
          </Frame>
        )}
      </div>
      <p className={styles.note} role="status">
        {describePoints(source.value, highlighted, page)}{" "}
        {source.value && describeThen(source.value, highlighted, answer, page)}
      </p>
    </PanelBox>
  );
}

function formatSignificance(value: number): string {
  return `${value * 100}\u00a0%`;
}

function describePoints(
  scatter: Scatter | undefined,
  highlighted: HighlightedPoints | null,
  page: DiagnosticsPage,
): string {
  if (!scatter) return "";
  const all = `${formatPlural(scatter.points, "point")}, ${formatCount(scatter.outliers)} outliers`;
  const brushed =
    page.brush && highlighted
      ? `Brushed: ${formatPlural(highlighted.points, "point")} of ${formatPlural(highlighted.units.length, "GPU")}; their times are highlighted on the timeline. `
      : "";
  return `${brushed}${all}.${scatter.note ? ` ${scatter.note}` : ""}`;
}

/** `At these times: 56 GPUs at 0 % GPU utilization, 8 GPUs at 79 % (medians).` Empty without a brush or with one cluster. */
function describeThen(
  scatter: Scatter,
  highlighted: HighlightedPoints | null,
  answer: DiagnosisAnswer,
  page: DiagnosticsPage,
): string {
  if (!page.brush || !highlighted || answer.clusters.length < 2) return "";
  const metric = findMetric(answer.metrics, chooseAxes(answer, page).x);
  const then = compareThen(scatter, highlighted.timesMs, answer.clusters);
  if (then.length < 2) return "";
  const parts = then.map(
    ({ gpus, x }, at) =>
      `${formatPlural(gpus, "GPU")} at ${formatValue(x, metric?.unit)}${at === 0 && metric ? ` ${metric.label}` : ""}`,
  );
  return `At these times: ${parts.join(", ")} (medians of the clusters).`;
}

interface PointsProps {
  readonly scatter: Scatter;
  readonly answer: DiagnosisAnswer;
  readonly page: DiagnosticsPage;
  readonly highlighted: HighlightedPoints | null;
  readonly x: DiagnosedMetric | undefined;
  readonly y: DiagnosedMetric | undefined;
  onBrush(brush: DiagnosticsPage["brush"]): void;
}

function Points({ scatter, answer, page, highlighted, x, y, onBrush }: PointsProps) {
  const bounds = useMemo(() => findBounds(scatter), [scatter]);
  const { colorOf, colors } = useMemo(() => colorPoints(scatter, answer), [scatter, answer]);
  if (bounds === null) return null;
  return (
    <div className={styles.frame}>
      <span className={styles.yAxis}>
        {listTicks(bounds.yFrom, bounds.yTo, Y_TICKS).map(({ value, ratio }) => (
          <span key={value} data-drawn-label={true} style={{ bottom: `${ratio * 100}%` }}>
            {formatValue(value, y?.unit)}
          </span>
        ))}
      </span>
      <ScatterChart
        label={`${y?.label} by ${x?.label}: ${formatPlural(scatter.points, "point")}, ${formatPlural(scatter.outliers, "outlier")}; arrow keys move a brush, Shift with arrow keys resizes it, Escape clears it`}
        x={scatter.x}
        y={scatter.y}
        colorOf={colorOf}
        colors={colors}
        isOutlier={scatter.isOutlier}
        isLit={highlighted?.mask ?? null}
        density={scatter.density}
        bounds={bounds}
        brush={page.brush}
        onBrush={onBrush}
      />
      <span className={styles.xAxis}>
        {listTicks(bounds.xFrom, bounds.xTo, X_TICKS).map(({ value, ratio }) => (
          <span key={value} data-drawn-label={true} style={{ left: `${ratio * 100}%` }}>
            {formatValue(value, x?.unit)}
          </span>
        ))}
      </span>
    </div>
  );
}

const X_TICKS = 5;
const Y_TICKS = 6;

/** Round numbers within the bounds, and where they are. Nothing is negative, though the bounds have a margin. */
function listTicks(from: number, to: number, most: number) {
  return listNumbers(Math.max(0, from), to, most).map((value) => ({ value, ratio: (value - from) / (to - from) }));
}

const OUTLIER_COLOR = "var(--bad)";

/** Colors by cluster; outliers have their own color. */
function colorPoints({ unit, isOutlier }: Scatter, { units, clusters }: DiagnosisAnswer) {
  const labels = new Map(units.map((diagnosed) => [diagnosed.unit, diagnosed.cluster]));
  const ofCode = unit.names.map((name) => (name === null ? 0 : (labels.get(name) ?? clusters.length)));
  const outlierCode = clusters.length + 1;
  const colorOf = Uint8Array.from(unit.codes, (code, at) => (isOutlier[at] ? outlierCode : (ofCode[code] ?? 0)));
  return { colorOf, colors: [...clusters.map(({ label }) => clusterColor(label)), clusterColor(null), OUTLIER_COLOR] };
}
