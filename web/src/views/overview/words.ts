// Labels and tones of states, the same everywhere in the overview.

import type { AllocationSource, NodeState, WorkloadState } from "../../api/generated.ts";
import type { UnitState } from "../../api/snapshot.ts";
import type { Tone } from "../../widgets/tag.tsx";
import type { MarkState } from "../../widgets/unit-mark.tsx";

export const WORKLOAD_TONES: Readonly<Record<WorkloadState, Tone>> = {
  running: "accent",
  waiting: "warn",
  suspended: "warn",
  completed: "ok",
  failed: "bad",
  cancelled: "neutral",
  timeout: "bad",
  out_of_memory: "bad",
  node_failed: "bad",
  preempted: "warn",
  unknown: "neutral",
};

export const NODE_TONES: Readonly<Record<NodeState, Tone>> = {
  idle: "neutral",
  mixed: "neutral",
  allocated: "neutral",
  draining: "warn",
  drained: "bad",
  down: "bad",
  unknown: "warn",
};

export const UNIT_TONES: Readonly<Record<UnitState, Tone>> = {
  allocated: "accent",
  free: "neutral",
  unavailable: "bad",
  stale: "warn",
  requested: "warn",
};

export const UNIT_STATE_WORDS: Readonly<Record<UnitState, string>> = {
  allocated: "allocated",
  free: "free",
  unavailable: "out of service",
  stale: "stale",
  requested: "requested",
};

export const SOURCE_WORDS: Readonly<Record<AllocationSource, string>> = {
  scheduler_index: "the scheduler reports node and GPU",
  pod_resources: "the kubelet reports the device",
  exporter_label: "the exporter labels the GPU",
  process: "a process ran on the GPU",
  whole_node: "the scheduler allocated whole nodes",
};

/** `out_of_memory` → `out of memory`. */
export function stateWords(state: string): string {
  return state.replaceAll("_", " ");
}

/** The shape of a workload's mark. */
export function workloadMark(state: WorkloadState): MarkState {
  if (state === "running") return "allocated";
  if (state === "waiting" || state === "suspended") return "requested";
  return state === "completed" || state === "cancelled" || state === "unknown" ? "free" : "unavailable";
}

export function toUnitState(name: string | null): UnitState {
  switch (name) {
    case "allocated":
    case "free":
    case "unavailable":
    case "requested":
      return name;
    default:
      return "stale";
  }
}
