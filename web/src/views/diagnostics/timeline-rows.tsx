// Rows of the timeline: one per metric, with a shared time axis, cursor and range, and events below.

import { useMemo, useState } from "react";
import type { DiagnosisAnswer, WorkloadEvent } from "../../api/generated.ts";
import type { SeriesLine } from "../../api/series.ts";
import { Axis } from "../../charts/axis.tsx";
import { type ChartSpan, LineChart, type TimeRange } from "../../charts/line-chart.tsx";
import { bytesUnit, linearScale, timeScale } from "../../charts/scales.ts";
import type { DiagnosticsPage } from "../../state/diagnostics.ts";
import { EventStrip } from "./event-strip.tsx";
import styles from "./timeline-panel.module.css";
import { drawShapes } from "./timeline-shapes.ts";
import { findDomain, valueAt } from "./timelines.ts";
import { findMetric, formatValue, formatWindow } from "./words.ts";

/** Of the axis of a metric, at most about so many: rows are low. */
const VALUE_TICKS = 2.5;
/** Width of an axis label. */
const LABEL_PX = 84;

interface RowsProps {
  readonly answer: DiagnosisAnswer;
  readonly page: DiagnosticsPage;
  readonly startMs: number;
  readonly endMs: number;
  readonly all: readonly SeriesLine[];
  readonly metrics: readonly string[];
  readonly events: readonly WorkloadEvent[];
  readonly width: number;
  readonly pointed: string | null;
  readonly highlighted: readonly TimeRange[];
  onZoom(range: TimeRange): void;
  onDraw(range: TimeRange | null): void;
  /** Shows the whole life; absent where it is shown. */
  onClear?: (() => void) | undefined;
}

export function Rows({
  answer,
  page,
  startMs,
  endMs,
  all,
  metrics,
  events,
  width,
  pointed,
  highlighted,
  onZoom,
  onDraw,
  onClear,
}: RowsProps) {
  const [cursorMs, setCursor] = useState<number | null>(null);
  const [drawn, setDrawn] = useState<TimeRange | null>(null);
  const spans = useMemo(() => toSpans(highlighted, events, endMs), [highlighted, events, endMs]);
  const draw = (range: TimeRange | null, isDone: boolean) => {
    setDrawn(isDone ? null : range);
    onDraw(isDone ? null : range);
    if (range && isDone) onZoom(range);
  };
  return (
    <div className={styles.rows} style={{ gridTemplateRows: `repeat(${metrics.length}, minmax(44px, 1fr)) auto` }}>
      {metrics.map((name) => (
        <MetricRow
          key={name}
          name={name}
          answer={answer}
          startMs={startMs}
          endMs={endMs}
          selected={page.units}
          all={all}
          width={width}
          pointed={pointed}
          spans={spans}
          cursorMs={cursorMs}
          drawn={drawn}
          onCursor={setCursor}
          onDraw={draw}
          onClear={onClear}
        />
      ))}
      <span className={styles.moment}>
        {cursorMs === null ? "Events" : new Date(cursorMs).toLocaleTimeString("en-GB")}
      </span>
      <div>
        <EventStrip events={events} startMs={startMs} endMs={endMs} />
        <Axis scale={timeScale(startMs, endMs, width / LABEL_PX)} side="below" length={width} />
      </div>
    </div>
  );
}

/** Violations are shaded faintly, brushed times strongly. */
function toSpans(
  highlighted: readonly TimeRange[],
  events: readonly WorkloadEvent[],
  endMs: number,
): readonly ChartSpan[] {
  const violations = events.filter(({ kind }) => kind === "violation");
  return [
    ...violations.map(({ at, until }) => ({ fromMs: at, toMs: until ?? endMs, color: "var(--warn)", alpha: 0.025 })),
    ...highlighted.map(({ fromMs, toMs }) => ({ fromMs, toMs, color: "var(--warn)", alpha: 0.22 })),
  ];
}

interface MetricRowProps {
  readonly name: string;
  readonly answer: DiagnosisAnswer;
  readonly startMs: number;
  readonly endMs: number;
  readonly selected: readonly string[];
  readonly all: readonly SeriesLine[];
  readonly width: number;
  readonly pointed: string | null;
  readonly spans: readonly ChartSpan[];
  readonly cursorMs: number | null;
  readonly drawn: TimeRange | null;
  onCursor(timeMs: number | null): void;
  onDraw(range: TimeRange | null, isDone: boolean): void;
  onClear?: (() => void) | undefined;
}

function MetricRow(props: MetricRowProps) {
  const {
    name,
    answer,
    startMs,
    endMs,
    selected,
    all,
    width,
    pointed,
    spans,
    cursorMs,
    drawn,
    onCursor,
    onDraw,
    onClear,
  } = props;
  const metric = findMetric(answer.metrics, name);
  const metricLines = useMemo(() => all.filter((line) => line.metric === name), [all, name]);
  const shapes = useMemo(
    () => drawShapes(metricLines, answer, { startMs, endMs, width }, selected, pointed),
    [metricLines, answer, startMs, endMs, selected, pointed, width],
  );
  const [low, high] = useMemo(() => findDomain(metricLines, metric?.unit ?? ""), [metricLines, metric?.unit]);
  const withinMs = ((endMs - startMs) / Math.max(1, width)) * 12;
  const readings =
    cursorMs === null
      ? []
      : shapes.lines
          .filter(({ isRead }) => isRead)
          .slice(0, 3)
          .map(({ key, color, timesMs, values }) => ({
            key,
            color,
            value: valueAt(timesMs, values, cursorMs, withinMs),
          }));
  return (
    <>
      <div className={styles.name}>
        <b data-drawn-label={true}>{metric?.label ?? name}</b>
        {readings.map(({ key, color, value }) => (
          <span key={key} style={{ color }}>
            {formatValue(value, metric?.unit)}
          </span>
        ))}
      </div>
      <Ticks low={low} high={high} unit={metric?.unit} />
      <div className={styles.chart}>
        <LineChart
          label={`${metric?.label ?? name} from ${formatWindow(startMs, endMs)}, ${formatValue(low, metric?.unit)} to ${formatValue(high, metric?.unit)}; arrow keys move the cursor, Shift with arrow keys selects a range, Enter zooms, Escape shows all`}
          startMs={startMs}
          endMs={endMs}
          low={low}
          high={high}
          lines={shapes.lines}
          bands={shapes.bands}
          spans={spans}
          cursorMs={cursorMs}
          drawn={drawn}
          onCursor={onCursor}
          onDraw={onDraw}
          onClear={onClear}
        />
      </div>
    </>
  );
}

/** Round values left of a chart; those at its ends stand within it, away from the next row's. */
function Ticks({ low, high, unit }: { low: number; high: number; unit: string | undefined }) {
  const say = (value: number) => formatValue(value, unit);
  const scale = linearScale(low, high, VALUE_TICKS, say, bytesUnit(high, unit ?? null));
  return (
    <div className={styles.ticks} aria-hidden="true">
      {scale.ticks.map(({ at, text }) => {
        const place = `${scale.place(at) * 100}%`;
        return (
          <span key={at} data-drawn-label={true} style={{ bottom: place, translate: `0 ${place}` }}>
            {text}
          </span>
        );
      })}
    </div>
  );
}
