// Duration of each step by part; selecting steps shows them in the graph.

import { useMemo } from "react";
import { formatRatio } from "../../base/format.ts";
import { type BarPart, StepBars } from "../../charts/step-bars.tsx";
import type { NsWindow } from "../../state/parallel.ts";
import { Legend } from "../../widgets/legend.tsx";
import { formatNs } from "./graph/axis.ts";
import { KIND_COLORS } from "./graph/kinds.ts";
import styles from "./parallel.module.css";
import { findShownSteps, type Step } from "./steps.ts";

const PARTS: readonly BarPart[] = [
  { key: "compute", title: "compute", color: KIND_COLORS.forward },
  { key: "wait", title: "exposed waiting", color: KIND_COLORS.waiting },
  { key: "transfer", title: "exposed transfer", color: KIND_COLORS.communication },
  { key: "idle", title: "idle", color: "var(--track)" },
];

interface StepStripProps {
  readonly steps: readonly Step[];
  /** Null: there is no graph that shows steps. */
  readonly window: NsWindow | null;
  /** Absent: steps cannot be selected. */
  onSteps?(steps: readonly Step[]): void;
}

export function StepStrip({ steps, window, onSteps }: StepStripProps) {
  const bars = useMemo(() => steps.map(toBar), [steps]);
  const selected = window && findShownSteps(steps, window);
  if (steps.length === 0) return <p className={styles.noSteps}>This trace has no step markers.</p>;
  return (
    <section className={styles.steps} aria-label="Steps">
      <h2>Time per step</h2>
      <div className={styles.bars}>
        <StepBars
          label={`Time of ${steps.length} steps by part${onSteps ? "; arrow keys select a step, Shift with arrow keys several" : ""}`}
          parts={PARTS}
          bars={bars}
          selected={selected}
          onSelect={(first, last) => onSteps?.(steps.slice(first, last + 1))}
        />
      </div>
      <Legend className={styles.stepLegend}>
        {PARTS.map(({ key, title, color }, at) => (
          <li key={key}>
            <i data-swatch={true} style={{ background: color }} /> {title} <b>{formatShare(steps, at)}</b>
          </li>
        ))}
      </Legend>
    </section>
  );
}

function lengthsOf({ computeNs, waitNs, transferNs, idleNs }: Step): readonly number[] {
  return [computeNs, waitNs, transferNs, idleNs];
}

function toBar(step: Step) {
  const lengths = lengthsOf(step);
  return {
    key: step.step,
    title: `Step ${step.step}: ${formatNs(step.durationNs)}, mean of ranks`,
    lengths,
    words: lengths.map((ns) => `${formatNs(ns)} · ${formatRatio(ns / Math.max(1, step.durationNs))}`),
  };
}

export function formatShare(steps: readonly Step[], part: number): string {
  const total = steps.reduce((sum, { durationNs }) => sum + durationNs, 0);
  return formatRatio(steps.reduce((sum, step) => sum + (lengthsOf(step)[part] ?? 0), 0) / Math.max(1, total));
}
