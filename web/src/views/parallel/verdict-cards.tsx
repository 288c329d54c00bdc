// Why a step is slow: ranked root causes in words with what each costs, and the pipeline's bubble. A card shows its evidence when
// clicked; that nothing stands out is an answer, too.

import type { TraceReportAnswer, Verdict, WhatIf } from "../../api/generated.ts";
import { formatRatio } from "../../base/format.ts";
import { saySeconds } from "./graph/axis.ts";
import styles from "./verdicts.module.css";

interface VerdictCardsProps {
  readonly report: TraceReportAnswer;
  readonly shown: Verdict | null;
  onShow(verdict: Verdict): void;
}

const KIND_WORDS: Readonly<Record<string, string>> = {
  slow_worker: "slow worker",
  stage_imbalance: "stage imbalance",
  input_stall: "input stall",
  slow_link: "slow link",
  launch_bound: "launch-bound",
  exposed_communication: "exposed communication",
  small_collectives: "small collectives",
  garbage_collection: "garbage collection",
};

export function sayKind(kind: string): string {
  return KIND_WORDS[kind] ?? kind.replaceAll("_", " ");
}

export function VerdictCards({ report, shown, onShow }: VerdictCardsProps) {
  const step = meanStep(report);
  return (
    <section className={styles.cards} aria-label="Verdicts">
      {report.verdicts.map((verdict, at) => (
        <button
          key={`${verdict.kind} ${verdict.rank} ${verdict.stage}`}
          type="button"
          className={styles.card}
          data-rank={at === 0 && !verdict.is_hidden ? "first" : undefined}
          aria-pressed={verdict === shown}
          disabled={verdict.spans.length === 0}
          data-tip={verdict.sentence}
          onClick={() => onShow(verdict)}
        >
          <small>
            {at + 1} · {sayKind(verdict.kind)}
            {verdict.is_hidden && " · hidden by a slower one"}
          </small>
          <span>{verdict.sentence}</span>
          <b>
            {saySeconds(verdict.seconds_per_step)}
            <small> per step{step > 0 && `, ${formatRatio(verdict.seconds_per_step / step)}`}</small>
          </b>
        </button>
      ))}
      {report.verdicts.length === 0 && (
        <div className={styles.card}>
          <small>verdict</small>
          <span>
            <strong>Nothing significant.</strong> No rank, stage or link costs more than a hundredth of the step or than
            what the clocks leave uncertain.
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
      {findBest(report).map(({ question, speed_up, then_s }) => (
        <div key={question} className={styles.card}>
          <small>what if</small>
          <span>
            {question}: a step of {saySeconds(then_s)}
          </span>
          <b>
            {speed_up === null ? "–" : `${speed_up.toFixed(2)}×`}
            <small> as fast</small>
          </b>
        </div>
      ))}
    </section>
  );
}

/** What would help most, where anything would. */
export function findBest({ what_if }: TraceReportAnswer): readonly WhatIf[] {
  const worth = what_if.filter(({ speed_up }) => speed_up !== null && speed_up > WORTH_SAYING);
  return worth.toSorted((a, b) => (b.speed_up ?? 0) - (a.speed_up ?? 0)).slice(0, 1);
}

const WORTH_SAYING = 1.01;

export function meanStep({ steps }: Pick<TraceReportAnswer, "steps">): number {
  return steps.length === 0 ? 0 : steps.reduce((sum, { length_s }) => sum + length_s, 0) / steps.length;
}
