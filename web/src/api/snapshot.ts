// The picture of the cluster as columns: one row per unit, GPUs and MIG instances first, then requested GPUs.

import { type Columns, emptyNames, type NameColumn } from "./columns.ts";

/** The states of a unit, independent of metrics. */
export const UNIT_STATES = ["allocated", "free", "unavailable", "stale", "requested"] as const;
export type UnitState = (typeof UNIT_STATES)[number];

/** Separates the partitions of a node. */
export const SHARED_MARK = " + ";

export type UnitNameColumn =
  | "unit"
  | "kind"
  | "node"
  | "uuid"
  | "partition"
  /** All partitions of its node, `a100 + all`; null for requested GPUs. */
  | "node_partitions"
  | "machine_type"
  | "unit_state"
  | "node_state"
  | "node_reason"
  | "rack"
  | "mig_profile"
  | "workload"
  | "workload_name"
  | "workload_state"
  | "workload_kind"
  | "user"
  | "project"
  | "experiment"
  | "resource_type"
  | "qos"
  | "pending_reason"
  | "waits_for"
  | "allocation_source"
  | "unit_health"
  | "free_use";

export type UnitNumberColumn =
  | "index"
  | "memory_bytes"
  | "power_limit_watts"
  | "holders"
  | "priority"
  | "gpus_requested"
  | "submitted_at"
  | "started_at"
  | "time_limit_s"
  | "restarts"
  | "allocation_confidence";

export interface Snapshot {
  readonly inventoryVersion: number;
  readonly rowCount: number;
  /** A column that the server does not send is all missing. */
  names(column: UnitNameColumn): NameColumn;
  numbers(column: UnitNumberColumn): Float64Array;
}

export function toSnapshot(columns: Columns, inventoryVersion: number): Snapshot {
  const { rowCount } = columns;
  return {
    inventoryVersion,
    rowCount,
    names: (column) => columns.findNames(column) ?? emptyNames(rowCount),
    numbers: (column) => columns.findNumbers(column) ?? new Float64Array(rowCount).fill(Number.NaN),
  };
}
