// The longest waits by job size under each choice, compared with first come, first served.

import type { SimulatedSize, SimulationAnswer } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import { countScale, durationScale } from "../../../charts/scales.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { XyChart } from "../../../charts/xy-chart.tsx";
import { ChartCard } from "../../../parts/charts/chart-card.tsx";
import { Warning } from "../../../widgets/warning.tsx";
import { nameUnit } from "../history/words.ts";
import { nameChoice } from "./words.ts";

export function formatSizes({ low, high }: Pick<SimulatedSize, "low" | "high">): string {
  return low === high ? formatCount(low) : `${formatCount(low)}–${formatCount(high)}`;
}

/** Warns of choices under which jobs of some sizes wait far longer than under first come, first served. */
export function StarvationWarning({ answer }: { answer: SimulationAnswer }) {
  const starved = answer.choices.flatMap((choice) => {
    const sizes = choice.sizes.filter(({ is_starved }) => is_starved);
    return sizes.length > 0 ? [{ choice, sizes }] : [];
  });
  if (starved.length === 0) return null;
  return (
    <Warning>
      <strong>Some jobs starve:</strong> at the 99th percentile they wait more than twice as long as under first come,
      first served.
      <ul>
        {starved.map(({ choice, sizes }) => (
          <li key={nameChoice(choice)}>
            {nameChoice(choice)}: {sizes.map(formatSizes).join(", ")} {nameUnit(answer.size_unit)}, up to{" "}
            {formatDuration(Math.max(...sizes.map(({ p99_wait_s }) => p99_wait_s)))}
          </li>
        ))}
      </ul>
    </Warning>
  );
}

export function SizeCard({ answer }: { answer: SimulationAnswer }) {
  const all = answer.choices.flatMap((choice) => choice.sizes);
  const maximum = Math.max(60, ...all.map(({ p99_wait_s }) => p99_wait_s));
  return (
    <ChartCard
      title="Longest waits by size"
      hint="99th percentile; the table compares with first come, first served"
      twin={{
        header: [
          "choice",
          answer.size_unit,
          "jobs",
          "wait p99, s",
          "longest, s",
          "FCFS p99, s",
          "FCFS longest, s",
          "starved",
        ],
        rows: answer.choices.flatMap((choice) =>
          choice.sizes.map((size) => [
            nameChoice(choice),
            formatSizes(size),
            size.jobs,
            size.p99_wait_s,
            size.max_wait_s,
            size.reference_p99_s,
            size.reference_max_s,
            size.is_starved ? "yes" : "",
          ]),
        ),
      }}
    >
      <XyChart
        label="Longest waits by size"
        x={countScale(1, Math.max(...all.map(({ high }) => high)))}
        y={durationScale(60, maximum)}
        xTitle={`requested ${nameUnit(answer.size_unit)}`}
        yTitle="99th percentile of waits"
        series={answer.choices.map((choice, place) => ({
          key: nameChoice(choice),
          title: nameChoice(choice),
          color: colorAt(place),
          look: "line",
          xs: choice.sizes.map(({ high }) => high),
          ys: choice.sizes.map(({ p99_wait_s }) => p99_wait_s),
        }))}
      />
    </ChartCard>
  );
}
