// Who pays for a gain: the longest waits of small and large jobs under each choice, beside first come, first served.

import type { SimulatedSize, SimulationAnswer } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import { Icon } from "../../../widgets/icon.tsx";
import { ChartCard } from "../drawing/chart-card.tsx";
import { IntervalRows } from "../drawing/interval-rows.tsx";
import { evenDurationScale } from "../drawing/scales.ts";
import { colorAt } from "../drawing/trace-colors.ts";
import { nameUnit } from "../history/words.ts";
import styles from "./simulator.module.css";
import { nameChoice } from "./words.ts";

export function saySizes({ low, high }: Pick<SimulatedSize, "low" | "high">): string {
  return low === high ? formatCount(low) : `${formatCount(low)}–${formatCount(high)}`;
}

/** Choices under which jobs of some sizes wait far longer than they would first come, first served. */
export function Starved({ answer }: { answer: SimulationAnswer }) {
  const found = answer.choices.flatMap((choice) => {
    const sizes = choice.sizes.filter(({ is_starved }) => is_starved);
    return sizes.length > 0 ? [{ choice, sizes }] : [];
  });
  if (found.length === 0) return null;
  return (
    <div className={styles.warning} role="alert">
      <Icon name="alert" size={14} />
      <span>
        <strong>Some jobs starve.</strong>{" "}
        {found.map(({ choice, sizes }) => (
          <span key={nameChoice(choice)}>
            {nameChoice(choice)}: those of {sizes.map(saySizes).join(", ")} {nameUnit(answer.size_unit)} wait up to{" "}
            {formatDuration(Math.max(...sizes.map(({ p99_wait_s }) => p99_wait_s)))} (99th percentile), more than twice
            as long as first come, first served.{" "}
          </span>
        ))}
      </span>
    </div>
  );
}

export function SizeCard({ answer }: { answer: SimulationAnswer }) {
  const sizes = answer.choices[0]?.sizes ?? [];
  const all = answer.choices.flatMap((choice) => choice.sizes);
  const most = Math.max(60, ...all.flatMap(({ p99_wait_s, reference_p99_s }) => [p99_wait_s, reference_p99_s ?? 0]));
  return (
    <ChartCard
      title="Longest waits by size"
      hint={`99th percentile by ${nameUnit(answer.size_unit)} asked for; bar: from the same jobs first come, first served`}
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
            saySizes(size),
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
      <IntervalRows
        label="Longest waits by size"
        scale={evenDurationScale(most * 1.05, 5)}
        groups={sizes.map((size, at) => ({
          key: saySizes(size),
          title: saySizes(size),
          detail: `${formatCount(size.jobs)} jobs`,
          rows: answer.choices.flatMap((choice, place) => {
            const own = choice.sizes[at];
            if (!own) return [];
            const theirs = own.reference_p99_s;
            return [
              {
                key: nameChoice(choice),
                color: colorAt(place),
                title: nameChoice(choice),
                dot: own.p99_wait_s,
                bar:
                  theirs === null
                    ? null
                    : ([Math.min(theirs, own.p99_wait_s), Math.max(theirs, own.p99_wait_s)] as const),
                text: formatDuration(own.p99_wait_s),
                tip: `${nameChoice(choice)}, ${saySizes(own)}: ${formatDuration(own.p99_wait_s)}${
                  theirs === null ? "" : `; first come, first served ${formatDuration(theirs)}`
                }`,
              },
            ];
          }),
        }))}
      />
    </ChartCard>
  );
}
