// Tests a rule on past data before it is saved.

import { type CSSProperties, useEffect, useRef, useState } from "react";
import type { RuleReading, TrialAnswer } from "../../../api/generated.ts";
import { formatCount, formatGpuHours, formatPlural, formatRatio } from "../../../base/format.ts";
import { type Problem, toProblem } from "../../../base/problem.ts";
import { formatDuration } from "../../../base/time.ts";
import { useRuleActions } from "../../../data/rules.ts";
import { Button } from "../../../widgets/button.tsx";
import styles from "./trial.module.css";

const SPANS = [
  { hours: 24, title: "24 h" },
  { hours: 168, title: "7 d" },
] as const;
const MOST_LISTED = 6;
/** A rule that marks more than this share is too broad. */
const TOO_MANY = 0.5;

interface Running {
  readonly title: string;
  readonly startedMs: number;
  /** That is done, 0–1. */
  readonly share: number;
}

export function Trial({ reading }: { reading: RuleReading | null }) {
  const { client } = useRuleActions();
  const [running, setRunning] = useState<Running | null>(null);
  const [answer, setAnswer] = useState<TrialAnswer | Problem | null>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const start = async ({ hours, title }: (typeof SPANS)[number]) => {
    if (reading?.document == null) return;
    const { expression, scope } = reading.document;
    const current = new AbortController();
    abort.current = current;
    const startedMs = performance.now();
    setRunning({ title, startedMs, share: 0 });
    setAnswer(null);
    const onProgress = (share: number) => {
      if (abort.current === current) setRunning({ title, startedMs, share });
    };
    const outcome = await client
      .tryOut({ document: { expression, scope }, hours }, onProgress, current.signal)
      .catch(toProblem);
    if (abort.current !== current) return;
    setRunning(null);
    if (!current.signal.aborted) setAnswer(outcome);
  };
  const stop = () => {
    abort.current?.abort();
    abort.current = null;
    setRunning(null);
  };
  const isStale = answer !== null && "text" in answer && reading !== null && answer.text !== reading.text;
  return (
    <section className={styles.trial} aria-label="Test on past data">
      <header>
        <h2>Test on past data</h2>
        {SPANS.map((span) => (
          <Button
            key={span.hours}
            disabled={reading?.document == null || running !== null}
            onClick={() => void start(span)}
          >
            Last {span.title}
          </Button>
        ))}
      </header>
      {running && <Progress {...running} onStop={stop} />}
      <div aria-live="polite">
        {answer && ("text" in answer ? <Outcome trial={answer} isStale={isStale} /> : <Failed problem={answer} />)}
      </div>
    </section>
  );
}

/** Below this progress the remaining time cannot be estimated. */
const TELLING = 0.1;

function Progress({ title, startedMs, share, onStop }: Running & { onStop: () => void }) {
  const seconds = (performance.now() - startedMs) / 1000;
  const leftS = share >= TELLING && seconds > 2 ? Math.ceil((seconds * (1 - share)) / share) : null;
  return (
    <div className={styles.progress}>
      <span
        role="progressbar"
        aria-label="Evaluating"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
        style={{ "--share": share } as CSSProperties}
      />
      <small>
        Evaluating the rule over the last {title}… {formatRatio(share)}
        {leftS !== null && `, ${formatDuration(leftS)} left`}
      </small>
      <Button onClick={onStop}>Stop</Button>
    </div>
  );
}

function Failed({ problem }: { problem: Problem }) {
  return (
    <p role="alert" className={styles.fault}>
      {problem.message} {problem.hint}
    </p>
  );
}

function Outcome({ trial, isStale }: { trial: TrialAnswer; isStale: boolean }) {
  const { times, workloads, gpu_hours, judged, lives, violations } = trial;
  const span = `the last ${formatDuration((trial.end - trial.start) / 1000)}`;
  const marked = violations.reduce((sum, { gpus }) => sum + gpus, 0) / Math.max(1, judged);
  return (
    <div className={styles.outcome} data-stale={isStale || undefined}>
      <p>
        {times === 0 ? (
          <b>It would not have fired in {span}.</b>
        ) : (
          <>
            <b>
              It would have fired {formatPlural(times, "time")} on {formatPlural(workloads, "workload")},{" "}
              {formatGpuHours(gpu_hours)}
            </b>{" "}
            in {span}.
          </>
        )}{" "}
        <small>
          {formatCount(judged)} of {formatCount(lives)} GPU allocations had enough data to evaluate.
          {isStale && " The rule has changed since then."}
        </small>
      </p>
      {marked > TOO_MANY && (
        <p className={styles.warning}>
          It marks {formatRatio(Math.min(1, marked))} of everything that it evaluates. Consider a stricter condition.
        </p>
      )}
      {violations.length > 0 && (
        <ul className={styles.found} aria-label="Largest violations">
          {violations.slice(0, MOST_LISTED).map((violation) => (
            <li key={violation.workload}>
              <span>{violation.workload_name ?? violation.workload}</span>
              <small>{violation.user}</small>
              <small>{formatPlural(violation.gpus, "GPU")}</small>
              <b>{formatGpuHours(violation.gpu_hours)}</b>
            </li>
          ))}
          {violations.length > MOST_LISTED && <li>and {formatCount(workloads - MOST_LISTED)} more</li>}
        </ul>
      )}
    </div>
  );
}
