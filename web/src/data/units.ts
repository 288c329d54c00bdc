// All units with their newest metrics. Rows of a tick mean something only beside the snapshot of the same inventory, so
// the two are always fetched to fit; the snapshot only when the inventory has changed.

import type { Client } from "../api/client.ts";
import type { Snapshot } from "../api/snapshot.ts";
import type { Tick } from "../api/tick.ts";
import type { Loadable } from "../base/loadable.ts";
import { useVersionedQuery } from "./versioned-query.ts";

export const UNIT_METRICS = [
  "gpu_util_ratio",
  "sm_active_ratio",
  "tensor_active_ratio",
  "dram_active_ratio",
  "power_watts",
  "memory_used_bytes",
  "gpu_temperature_celsius",
] as const;
export type UnitMetric = (typeof UNIT_METRICS)[number];

export interface Units {
  readonly snapshot: Snapshot;
  /** Null where the inventory changes faster than it can be fetched: better no metrics than those of other units. */
  readonly tick: Tick | null;
}

export function useUnits(): Loadable<Units> {
  return useVersionedQuery<Units>({
    key: ["units", UNIT_METRICS],
    follows: "both",
    ask: (client, signal, held) => fetchUnits(client, UNIT_METRICS, held, signal),
  });
}

const ATTEMPTS = 3;

export async function fetchUnits(
  client: Pick<Client, "snapshot" | "tick">,
  metrics: readonly string[],
  held?: Units,
  signal?: AbortSignal,
): Promise<Units> {
  let [snapshot, tick] = await Promise.all([held?.snapshot ?? client.snapshot(signal), client.tick(metrics, signal)]);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (isSameInventory(snapshot, tick)) return { snapshot, tick };
    // A held snapshot says nothing of what is newer: a server that was restarted counts from the beginning.
    if (snapshot === held?.snapshot || tick.inventoryVersion > snapshot.inventoryVersion) {
      snapshot = await client.snapshot(signal);
    } else {
      tick = await client.tick(metrics, signal);
    }
  }
  return { snapshot, tick: isSameInventory(snapshot, tick) ? tick : null };
}

function isSameInventory(snapshot: Snapshot, tick: Tick): boolean {
  return tick.inventoryVersion === snapshot.inventoryVersion && tick.rowCount === snapshot.rowCount;
}

export function findMetric(units: Units, metric: UnitMetric): Float32Array | null {
  return units.tick?.find(metric) ?? null;
}
