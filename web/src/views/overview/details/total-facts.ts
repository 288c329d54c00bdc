// Totals of units as names and values, for the details and the tooltip of a group.

import {
  formatCount,
  formatGpuHours,
  formatHours,
  formatPlural,
  formatRatio,
  formatWatts,
} from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import { WASTE_HOURS } from "../../../data/waste.ts";
import type { UnitTotals } from "./unit-totals.ts";

export interface TextFact {
  readonly name: string;
  readonly value: string | null;
}

/** `clusterUtil`: what the units' utilization is compared with. */
export function totalFacts(totals: UnitTotals, clusterUtil: number | null): readonly TextFact[] {
  const { gpus, states } = totals;
  return [
    { name: "GPUs", value: gpus > 0 ? gpuWords(totals) : null },
    { name: "allocated", value: gpus > 0 && states.allocated < gpus ? formatCount(states.allocated) : null },
    { name: "free", value: states.free > 0 ? formatCount(states.free) : null },
    { name: "out of service", value: orNull(states.unavailable) },
    { name: "stale", value: orNull(states.stale) },
    { name: "requested", value: states.requested > 0 ? formatPlural(states.requested, "GPU") : null },
    { name: "longest wait", value: totals.longestWaitS === null ? null : formatDuration(totals.longestWaitS) },
    { name: "workloads", value: totals.workloads > 1 ? formatCount(totals.workloads) : null },
    { name: "users", value: totals.users > 1 ? formatCount(totals.users) : null },
    { name: "utilization", value: totals.utilRatio === null ? null : utilWords(totals.utilRatio, clusterUtil) },
    { name: "power", value: totals.powerWatts === null ? null : powerWords(totals) },
    { name: "held so far", value: totals.heldHours === null ? null : formatGpuHours(totals.heldHours) },
    { name: `wasted in ${WASTE_HOURS} h`, value: totals.wastedHours === null ? null : wasteWords(totals) },
  ];
}

function orNull(count: number): string | null {
  return count > 0 ? formatCount(count) : null;
}

function gpuWords({ gpus, nodes }: UnitTotals): string {
  return `${formatCount(gpus)} on ${formatPlural(nodes, "node")}`;
}

function utilWords(ratio: number, cluster: number | null): string {
  return cluster === null ? formatRatio(ratio) : `${formatRatio(ratio)}, cluster ${formatRatio(cluster)}`;
}

function powerWords({ powerWatts, powerLimitWatts }: UnitTotals): string {
  const limit = powerLimitWatts === null ? "" : ` of ${formatWatts(powerLimitWatts)}`;
  return `${formatWatts(powerWatts)}${limit}`;
}

function wasteWords({ wastedHours, recentHours }: UnitTotals): string {
  return `${formatHours(wastedHours)} of ${formatGpuHours(recentHours)}`;
}
