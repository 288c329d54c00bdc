// Form for a forecast before submitting: when a job of a given size and length would start, and what would start sooner.

import { type FormEvent, useState } from "react";
import type { Alternative, PartitionQueue, StartForecast, WaitAnswer } from "../../../api/generated.ts";
import { formatInstant, formatShortDuration } from "../../../base/time.ts";
import { useWait } from "../../../data/scheduling.ts";
import { changeScheduling, type SchedulingPage } from "../../../state/scheduling.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { Button } from "../../../widgets/button.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import styles from "./controls.module.css";

interface ForecastFormProps {
  readonly partitions: readonly PartitionQueue[];
  readonly page: SchedulingPage;
}

export function ForecastForm({ partitions, page }: ForecastFormProps) {
  const change = useChangeScreen();
  const { ask } = page;
  const [gpus, setGpus] = useState(ask?.gpus ?? 8);
  const [hours, setHours] = useState(ask?.hours ?? 4);
  const [partition, setPartition] = useState(ask?.partition ?? "");
  const answer = useWait(ask);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    change(changeScheduling({ ask: { gpus, hours, partition } }));
  };
  return (
    <section aria-label="Before submitting">
      <h2>Before submitting</h2>
      <form className={styles.forecast} onSubmit={submit}>
        <label>
          <input
            type="number"
            min={1}
            max={100_000}
            required
            value={gpus}
            aria-label="GPUs"
            onChange={(event) => setGpus(event.target.valueAsNumber)}
          />
          GPUs for
        </label>
        <label>
          <input
            type="number"
            min={0.25}
            max={1000}
            step={0.25}
            required
            value={hours}
            aria-label="Hours"
            onChange={(event) => setHours(event.target.valueAsNumber)}
          />
          hours
        </label>
        <select aria-label="Partition" value={partition} onChange={(event) => setPartition(event.target.value)}>
          <option value="">in any partition</option>
          {partitions
            .filter(({ is_up }) => is_up)
            .map(({ name }) => (
              <option key={name} value={name}>
                in {name}
              </option>
            ))}
        </select>
        <Button type="submit">Forecast start</Button>
      </form>
      {ask && (
        <div className={styles.answer}>
          <Frame source={answer} what="the forecast">
            {(value) => <Forecast answer={value} />}
          </Frame>
        </div>
      )}
    </section>
  );
}

function Forecast({ answer }: { answer: WaitAnswer }) {
  return (
    <>
      <p>
        <strong>{describeForecast(answer.start, answer.at)}</strong> <small>in {answer.start.partition}</small>
      </p>
      {answer.alternatives.length > 0 && (
        <ul>
          {answer.alternatives.slice(0, 3).map((alternative) => (
            <li key={`${alternative.change} ${alternative.start.partition} ${alternative.start.gpus}`}>
              {describeAlternative(alternative)}: {uncapitalize(describeForecast(alternative.start, answer.at))}
            </li>
          ))}
        </ul>
      )}
      <small data-tip={answer.assumptions.join(" ")}>
        {answer.calibrated_on > 0
          ? `80 % interval, calibrated on ${answer.calibrated_on} waits`
          : "80 % interval, not calibrated yet"}
      </small>
    </>
  );
}

export function describeForecast(start: StartForecast, nowMs: number): string {
  if (start.is_at_once) return "Immediately";
  const interval = start.intervals[0];
  if (!interval) return `Likely in ${formatShortDuration(start.wait_s)}`;
  const [from, to] = [interval.from_at, interval.to_at].map((at) => formatInstant(at, nowMs));
  const isSameDay = from?.slice(0, -5) === to?.slice(0, -5);
  return `Likely ${from} – ${isSameDay ? to?.slice(-5) : to}`;
}

function uncapitalize(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

export function describeAlternative({ change, start }: Alternative): string {
  if (change === "partition") return `In ${start.partition}`;
  if (change === "shorter") return `For ${start.hours} h`;
  return `With ${start.gpus} ${start.gpus === 1 ? "GPU" : "GPUs"}`;
}
