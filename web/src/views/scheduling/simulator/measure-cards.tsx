// Measures of all choices: a table compared with the first choice, and bars with the effect of one second of jitter.

import type { JitteredMeasure, SimulationAnswer } from "../../../api/generated.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { IntervalRows } from "../../../charts/interval-rows.tsx";
import { evenDurationScale, linearScale, type Scale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { ChartCard } from "../../../parts/charts/chart-card.tsx";
import styles from "./simulator.module.css";
import { compareMeasures, formatMeasure, nameChoice } from "./words.ts";

export function MeasureCards({ answer }: { answer: SimulationAnswer }) {
  const names = answer.choices[0]?.measures.map(({ name, title, unit }) => ({ name, title, unit })) ?? [];
  return names.map(({ name, title, unit }) => (
    <MeasureCard key={name} answer={answer} name={name} title={title} unit={unit} />
  ));
}

export function MeasureTable({ answer }: { answer: SimulationAnswer }) {
  const first = answer.choices[0];
  return (
    <div className={styles.table}>
      <table aria-label="Measures">
        <thead>
          <tr>
            <th scope="col">Order and backfilling</th>
            {first?.measures.map(({ name, title }) => (
              <th key={name} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {answer.choices.map((choice, place) => (
            <tr key={nameChoice(choice)}>
              <th scope="row">
                <i data-swatch={true} style={{ background: colorAt(place) }} /> {nameChoice(choice)}
              </th>
              {choice.measures.map((measure, at) => (
                <Cell key={measure.name} measure={measure} first={place === 0 ? undefined : first?.measures[at]} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <p>
        ± one standard deviation over {answer.jitter} runs with run times ±1 s. Differences from the first row of less
        than two standard deviations count as the same.
      </p>
    </div>
  );
}

function Cell({ measure, first }: { measure: JitteredMeasure; first: JitteredMeasure | undefined }) {
  const { mean, value, sd, unit } = measure;
  const comparison = first ? compareMeasures(measure, first) : "unknown";
  return (
    <td>
      {formatMeasure(mean ?? value, unit)}
      {sd !== null && <small> ± {formatMeasure(sd, unit)}</small>}
      {comparison !== "unknown" && <em data-compared={comparison}>{comparison}</em>}
    </td>
  );
}

function toScale(maximum: number, unit: string): Scale {
  if (unit === "ratio") return linearScale(0, 1, 5, formatRatio);
  if (unit === "index") return linearScale(0, 1, 5, (value) => value.toFixed(1));
  if (unit === "s") return evenDurationScale(Math.max(60, maximum), 5);
  const top = Math.max(2, maximum);
  return linearScale(0, top, 5, top < 10 ? (value) => String(Number(value.toFixed(1))) : formatCount);
}

interface MeasureCardProps {
  readonly answer: SimulationAnswer;
  readonly name: string;
  readonly title: string;
  readonly unit: string;
}

function MeasureCard({ answer, name, title, unit }: MeasureCardProps) {
  const rows = answer.choices.flatMap((choice, place) => {
    const measure = choice.measures.find((other) => other.name === name);
    return measure ? [{ choice, place, measure }] : [];
  });
  const maximum = Math.max(...rows.map(({ measure }) => measure.high ?? measure.value ?? 0));
  // For example no job had a promised start; the table above shows dashes.
  if (rows.every(({ measure }) => measure.value === null)) return null;
  return (
    <ChartCard
      title={title.charAt(0).toUpperCase() + title.slice(1)}
      hint="dot: mean of the jittered runs, bar: their middle 95 %"
      twin={{
        header: [
          "order",
          "backfilling",
          unit === "s" ? `${title}, ${unit}` : title,
          "jittered mean",
          "sd",
          "low",
          "high",
        ],
        rows: rows.map(({ choice, measure }) => [
          choice.policy,
          choice.backfill,
          measure.value,
          measure.mean,
          measure.sd,
          measure.low,
          measure.high,
        ]),
      }}
    >
      <IntervalRows
        label={title}
        scale={toScale(maximum * 1.05, unit)}
        groups={rows.map(({ choice, place, measure }) => ({
          key: nameChoice(choice),
          title: nameChoice(choice),
          rows: [
            {
              key: name,
              color: colorAt(place),
              title: nameChoice(choice),
              dot: measure.mean ?? measure.value,
              bar: measure.low !== null && measure.high !== null ? ([measure.low, measure.high] as const) : null,
              text: formatMeasure(measure.mean ?? measure.value, unit),
              tip: `${nameChoice(choice)}: ${formatMeasure(measure.value, unit)} as recorded; jittered ${formatMeasure(measure.low, unit)} to ${formatMeasure(measure.high, unit)}`,
            },
          ],
        }))}
      />
    </ChartCard>
  );
}
