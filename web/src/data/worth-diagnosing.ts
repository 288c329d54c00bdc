// Which workloads are worth a diagnosis: those on several GPUs, rule breakers first, then the largest.

import type { RuleAnswer, WorkloadAnswer } from "../api/generated.ts";
import { BROKEN } from "./row-rules.ts";
import type { Units } from "./units.ts";

export type Broken = ReadonlyMap<string, readonly RuleAnswer[]>;

/** Rules that some unit of a workload breaks now, in the order of the bar. */
export function findBroken(units: Units | undefined): Broken {
  const rulesByWorkload = new Map<string, RuleAnswer[]>();
  if (!units?.rules) return rulesByWorkload;
  const { codes, names } = units.snapshot.names("workload");
  for (const { rule, states, broken } of units.rules.rules) {
    const workloads = new Set<string>();
    for (const row of broken) {
      const name = states[row] === BROKEN ? names[codes[row] ?? 0] : null;
      if (name) workloads.add(name);
    }
    for (const name of workloads) rulesByWorkload.set(name, [...(rulesByWorkload.get(name) ?? []), rule]);
  }
  return rulesByWorkload;
}

export function orderWorkloads(all: readonly WorkloadAnswer[], broken: Broken): readonly WorkloadAnswer[] {
  const rank = ({ workload }: WorkloadAnswer) => (broken.has(workload) ? 0 : 1);
  return all
    .filter(({ gpus_requested }) => gpus_requested > 1)
    .sort((a, b) => rank(a) - rank(b) || b.gpus_requested - a.gpus_requested || (a.workload < b.workload ? -1 : 1));
}
