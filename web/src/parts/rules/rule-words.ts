// What is said of a rule in the bar and in lists.

import type { RuleAnswer, RuleCounts } from "../../api/generated.ts";
import { formatCount, formatPlural } from "../../base/format.ts";

/** The tip of a chip. `counts`: at the minute the screen is of. */
export function describeRule(rule: RuleAnswer, counts: RuleCounts | null): string {
  return [`${rule.name}: ${rule.text}`, describeCounts(counts)].join(" — ");
}

export function describeCounts(counts: RuleCounts | null): string {
  if (counts === null) return "not judged yet";
  const { workloads, units, unjudged } = counts;
  const broken =
    workloads === 0
      ? "nobody breaks it"
      : `broken by ${formatPlural(workloads, "workload")} on ${formatPlural(units, "GPU")}`;
  return unjudged > 0 ? `${broken}, ${formatCount(unjudged)} not judged yet` : broken;
}
