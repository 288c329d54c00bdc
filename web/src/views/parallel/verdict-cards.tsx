// Why a step is slow: ranked root causes with their cost per step, the pipeline bubble and the best what-if. A click on a card
// shows its evidence.

import type { TraceReportAnswer, Verdict, WhatIf } from "../../api/generated.ts";
import { formatRatio } from "../../base/format.ts";
import { colorAt } from "../../charts/series-colors.ts";
import { formatSeconds } from "./graph/axis.ts";
import { listOccurrences } from "./graph/highlight.ts";
import styles from "./verdicts.module.css";

interface VerdictCardsProps {
  readonly report: TraceReportAnswer;
  /** What the trace lacks, and what was assumed. */
  readonly notes?: readonly string[];
  /** The place of the verdict whose spans are highlighted. */
  readonly shown?: number | null;
  /** Shows the evidence; absent in reports. */
  onShow?(verdict: number): void;
}

const KIND_TITLES: Readonly<Record<string, string>> = {
  slow_worker: "slow worker",
  stage_imbalance: "stage imbalance",
  input_stall: "input stall",
  slow_link: "slow link",
  launch_bound: "launch-bound",
  exposed_communication: "exposed communication",
  small_collectives: "small collectives",
  garbage_collection: "garbage collection",
  core_contention: "too few cores",
};

/** Those first that no class of spans has. */
const CAUSE_COLORS = [7, 4, 5, 3, 0, 2, 6, 1] as const;

/** The color of a verdict, on its card and wherever it acts. */
export function causeColor(verdict: number): string {
  return colorAt(CAUSE_COLORS[verdict % CAUSE_COLORS.length] ?? 0);
}

export function nameKind(kind: string): string {
  return KIND_TITLES[kind] ?? kind.replaceAll("_", " ");
}

export function VerdictCards({ report, notes = [], shown = null, onShow }: VerdictCardsProps) {
  const step = meanStep(report);
  return (
    <section className={styles.cards} aria-label="Verdicts">
      {report.verdicts.map((verdict, at) => (
        <button
          // biome-ignore lint/suspicious/noArrayIndexKey: verdicts are identified by their place
          key={at}
          type="button"
          className={styles.card}
          data-rank={at === 0 && !verdict.is_hidden ? "first" : undefined}
          aria-pressed={at === shown}
          disabled={!onShow || !hasPlaces(verdict)}
          data-tip={verdict.sentence}
          onClick={() => onShow?.(at)}
        >
          <small>
            {onShow && <i data-swatch={true} style={{ background: causeColor(at) }} />} {at + 1} ·{" "}
            {nameKind(verdict.kind)}
            {verdict.is_hidden && " · masked by a larger cause"}
          </small>
          <span>{verdict.sentence}</span>
          <b>
            {formatSeconds(verdict.seconds_per_step)}
            <small>
              {" "}
              per step{step > 0 && `, ${formatRatio(verdict.seconds_per_step / step)}`}
              {describeRhythm(verdict, report.steps.length)}
            </small>
          </b>
        </button>
      ))}
      {report.verdicts.length === 0 && (
        <div className={styles.card}>
          <small>verdict</small>
          <span>
            <strong>Nothing significant.</strong> No rank, stage or link costs more than 1 % of the step, or more than
            the clock error.
          </span>
        </div>
      )}
      {report.bubble && (
        <div className={styles.card}>
          <small>pipeline bubble</small>
          <span>
            ideal {formatRatio(report.bubble.ideal_ratio)} + imbalance {formatRatio(report.bubble.imbalance_ratio)} +
            jitter {formatRatio(report.bubble.jitter_ratio)}
          </span>
          <b>
            {formatRatio(report.bubble.measured_ratio)}
            <small> idle, mean over stages</small>
          </b>
        </div>
      )}
      {notes.length > 0 && (
        <div className={styles.card} data-tip={notes.join(" ")}>
          <small>about this trace</small>
          <span>{notes.join(" ")}</span>
        </div>
      )}
      {findBestWhatIf(report).map(({ question, speed_up, then_s }) => (
        <div key={question} className={styles.card}>
          <small>what if</small>
          <span>
            {question}: a step of {formatSeconds(then_s)}
          </span>
          <b>
            {speed_up === null ? "–" : `${speed_up.toFixed(2)}×`}
            <small> speedup</small>
          </b>
        </div>
      ))}
    </section>
  );
}

function hasPlaces(verdict: Verdict): boolean {
  return verdict.spans.length > 0 || listOccurrences(verdict).length > 0;
}

/** In which steps it acts, unless in all. */
export function describeRhythm({ rhythm }: Verdict, stepCount: number): string {
  if (!rhythm || rhythm.steps.length >= stepCount) return "";
  return `; ${formatSeconds(rhythm.seconds_per_affected_step)} in ${rhythm.steps.length} of ${stepCount} steps`;
}

/** The what-if with the largest speedup, where it is noticeable. */
export function findBestWhatIf({ what_if }: TraceReportAnswer): readonly WhatIf[] {
  const noticeable = what_if.filter(({ speed_up }) => speed_up !== null && speed_up > MIN_SPEED_UP);
  return noticeable.toSorted((a, b) => (b.speed_up ?? 0) - (a.speed_up ?? 0)).slice(0, 1);
}

const MIN_SPEED_UP = 1.01;

export function meanStep({ steps }: Pick<TraceReportAnswer, "steps">): number {
  return steps.length === 0 ? 0 : steps.reduce((sum, { length_s }) => sum + length_s, 0) / steps.length;
}
