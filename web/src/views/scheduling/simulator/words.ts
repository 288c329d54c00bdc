// Names of orders and backfilling, and formats of measures.

import type { JitteredMeasure, SimulatedChoice } from "../../../api/generated.ts";
import { BACKFILLS, POLICIES } from "../../../base/catalogue.ts";
import { formatCount, MISSING } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import type { Estimates } from "../../../state/scheduling.ts";

const POLICY_LABELS = new Map(POLICIES.map(({ name, label }) => [name, label]));
const BACKFILL_LABELS = new Map(BACKFILLS.map(({ name, label }) => [name, label]));

/** The label of a policy; its name where a newer server has policies that this page does not list. */
export function namePolicy(policy: string): string {
  return POLICY_LABELS.get(policy) ?? policy;
}

export function nameBackfill(backfill: string): string {
  return BACKFILL_LABELS.get(backfill) ?? backfill;
}

export function nameChoice({
  policy,
  backfill,
  omega,
}: Pick<SimulatedChoice, "policy" | "backfill" | "omega">): string {
  const factor = omega === null ? "" : ` ω\u00a0${omega}`;
  return `${namePolicy(policy)} + ${nameBackfill(backfill)}${factor}`;
}

export const ESTIMATE_WORDS: Readonly<Record<Estimates, string>> = {
  request: "requested run times",
  actual: "actual run times",
  predicted: "run times predicted from the last two",
  boosted: "run times predicted by boosted trees",
  "elapsed-aware": "elapsed-aware predictions",
};

/** Parses factors such as `0.05, 0.1`; undefined where one is invalid. */
export function parseOmegas(text: string): readonly string[] | undefined {
  const words = text.split(/[\s,;]+/).filter((word) => word !== "");
  const isValid = words.length > 0 && words.length <= 6 && words.every((word) => /^\d{1,2}(\.\d{1,4})?$/.test(word));
  return isValid && words.every((word) => Number(word) <= 10) ? [...new Set(words)] : undefined;
}

export function formatMeasure(value: number | null, unit: string): string {
  if (value === null) return MISSING;
  if (unit === "s") return value < 10 ? `${value.toFixed(1)}\u00a0s` : formatDuration(value);
  if (unit === "ratio") return `${(value * 100).toFixed(2)}\u00a0%`;
  return value < 100 ? value.toFixed(2) : formatCount(value);
}

const MORE_IS_BETTER: ReadonlySet<string> = new Set(["utilization", "fairness"]);

export type Comparison = "better" | "worse" | "same" | "unknown";

/** Compares with the first choice; differences of less than two standard deviations count as the same. */
export function compareMeasures(measure: JitteredMeasure, first: JitteredMeasure): Comparison {
  if (measure.mean === null || first.mean === null) return "unknown";
  const noise = 2 * Math.max(measure.sd ?? 0, first.sd ?? 0);
  const difference = measure.mean - first.mean;
  if (Math.abs(difference) <= noise) return "same";
  return difference > 0 === MORE_IS_BETTER.has(measure.name) ? "better" : "worse";
}
