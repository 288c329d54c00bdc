// Wait against violation of promised starts, one point per choice, with what was published about the same trace.

import type { JitteredMeasure, SimulationAnswer } from "../../../api/generated.ts";
import { HOUR_S, MINUTE_S } from "../../../base/durations.ts";
import { Plot, type PlotArea, round, usePlotArea } from "../../../charts/plot.tsx";
import { linearScale, type Scale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { ChartCard } from "../../../parts/charts/chart-card.tsx";
import styles from "./simulator.module.css";
import { formatMeasure, nameBackfill, nameChoice } from "./words.ts";

interface Point {
  readonly key: string;
  readonly title: string;
  readonly color: string;
  readonly wait: Span;
  readonly violation: Span;
  readonly isPublished: boolean;
}

interface Span {
  readonly value: number;
  readonly low: number | null;
  readonly high: number | null;
}

const HEIGHT_PX = 300;
const LABEL_PX = 190;

export function TradeOffCard({ answer }: { answer: SimulationAnswer }) {
  const points = listPoints(answer);
  // Without promised starts there is nothing to trade a shorter wait for.
  if (!points.some(({ isPublished, violation }) => !isPublished && violation.value > 0)) return null;
  return (
    <ChartCard
      title="Wait and violation"
      hint={`mean wait, and mean delay beyond the promised start; lower left is better${answer.published?.length ? "; diamonds: published by Zhang & Dai, first come, first served" : ""}`}
      isWide
      twin={{
        header: ["choice", "wait, s", "low", "high", "violation, s", "low", "high"],
        rows: points.map(({ title, wait, violation }) => [
          title,
          wait.value,
          wait.low,
          wait.high,
          violation.value,
          violation.low,
          violation.high,
        ]),
      }}
    >
      <TradeOff points={points} />
    </ChartCard>
  );
}

function listPoints({ choices, published = [] }: SimulationAnswer): readonly Point[] {
  const simulated = choices.flatMap((choice, place) => {
    const [wait, violation] = ["wait_s", "violation_s"].map((name) =>
      toSpan(choice.measures.find((measure) => measure.name === name)),
    );
    if (!wait || !violation) return [];
    const title = nameChoice(choice);
    return [{ key: title, title, color: colorAt(place), wait, violation, isPublished: false }];
  });
  return [
    ...simulated,
    ...published.map(({ backfill, wait_s, violation_s }) => ({
      key: `published ${backfill}`,
      title: `Published: ${nameBackfill(backfill)}`,
      color: "var(--text)",
      wait: { value: wait_s, low: null, high: null },
      violation: { value: violation_s, low: null, high: null },
      isPublished: true,
    })),
  ];
}

function toSpan(measure: JitteredMeasure | undefined): Span | null {
  const value = measure?.mean ?? measure?.value;
  if (measure === undefined || value === null || value === undefined) return null;
  return { value, low: measure.low, high: measure.high };
}

function TradeOff({ points }: { points: readonly Point[] }) {
  const x = toScale(points.map(({ wait }) => wait));
  const y = toScale(points.map(({ violation }) => violation));
  const [place, area] = usePlotArea(x, y, 64);
  return (
    <div ref={place} style={{ height: HEIGHT_PX }}>
      <Plot area={area} x={x} y={y} xTitle="mean wait" yTitle="mean violation" label="Violation by wait">
        {points.map((point) => (
          <Mark key={point.key} point={point} area={area} />
        ))}
      </Plot>
    </div>
  );
}

function Mark({ point: { title, color, wait, violation, isPublished }, area }: { point: Point; area: PlotArea }) {
  const [left, top] = [area.toX(wait.value), area.toY(violation.value)];
  const isAtEnd = left + LABEL_PX > area.left + area.width;
  return (
    <g data-point={title}>
      {wait.low !== null && wait.high !== null && (
        <path
          stroke={color}
          strokeOpacity={0.6}
          d={`M${round(area.toX(wait.low))} ${round(top)}H${round(area.toX(wait.high))}`}
        />
      )}
      {violation.low !== null && violation.high !== null && (
        <path
          stroke={color}
          strokeOpacity={0.6}
          d={`M${round(left)} ${round(area.toY(violation.low))}V${round(area.toY(violation.high))}`}
        />
      )}
      {isPublished ? (
        <path
          d={`M${round(left)} ${round(top - 7)}l7 7l-7 7l-7 -7z`}
          fill="var(--panel)"
          stroke={color}
          strokeWidth={1.6}
          data-tip={`${title}: ${formatMeasure(wait.value, "s")} wait, ${formatMeasure(violation.value, "s")} violation`}
        />
      ) : (
        <circle
          cx={left}
          cy={top}
          r={5}
          fill={color}
          data-tip={`${title}: ${formatMeasure(wait.value, "s")} wait, ${formatMeasure(violation.value, "s")} violation`}
        />
      )}
      <text
        className={styles.pointLabel}
        x={left + (isAtEnd ? -9 : 9)}
        y={top - 9}
        textAnchor={isAtEnd ? "end" : "start"}
      >
        {title}
      </text>
    </g>
  );
}

/** Around all values and their intervals; from 0 where that is near. */
function toScale(spans: readonly Span[]): Scale {
  const low = Math.min(...spans.map((span) => span.low ?? span.value));
  const high = Math.max(...spans.map((span) => span.high ?? span.value), 1);
  const margin = Math.max((high - low) * 0.12, high * 0.02);
  const from = low < 0.5 * high ? 0 : low - margin;
  const unit = high > 3 * HOUR_S ? HOUR_S : high > 3 * MINUTE_S ? MINUTE_S : 1;
  const name = unit === HOUR_S ? "h" : unit === MINUTE_S ? "min" : "s";
  const format = (value: number) => `${Number((value / unit).toPrecision(3))} ${name}`;
  return linearScale(from, high + margin, 5, format, unit);
}
