// Descriptions of rules for the bar and for lists.

import type { RuleAnswer, RuleCounts, Subject } from "../../api/generated.ts";
import { formatCount, formatPlural } from "../../base/format.ts";

/** The tip of a chip. `counts`: at the minute the screen is of. */
export function describeRule(rule: RuleAnswer, counts: RuleCounts | null): string {
  return [`${rule.name}: ${rule.text}`, describeCounts(counts, rule.subject)].join(" — ");
}

export function describeCounts(counts: RuleCounts | null, subject: Subject = "workloads"): string {
  if (counts === null) return "not evaluated yet";
  const { workloads, unjudged } = counts;
  const broken = workloads === 0 ? "no violations" : `broken by ${describeBroken(counts, subject)}`;
  return unjudged > 0 ? `${broken}, ${formatCount(unjudged)} not evaluated yet` : broken;
}

/** Who breaks a rule, in numbers. */
export function describeBroken({ workloads: count, units }: RuleCounts, subject: Subject): string {
  switch (subject) {
    case "workloads":
      return `${formatPlural(count, "workload")} on ${formatPlural(units, "GPU")}`;
    case "gpus":
      return `${formatPlural(units, "GPU")} of ${formatPlural(count, "node")}`;
    case "nodes":
      return `${formatPlural(count, "node")} with ${formatPlural(units, "GPU")}`;
    case "sources":
      return formatPlural(count, "source");
    case "users":
      return formatPlural(count, "user");
    case "projects":
      return formatPlural(count, "project");
  }
}
