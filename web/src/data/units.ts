// All units with their newest metrics. The rows of a tick are valid only with the snapshot of the same inventory, so
// the two are always fetched together; the snapshot only when the inventory has changed.

import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import type { Client } from "../api/client.ts";
import type { Snapshot } from "../api/snapshot.ts";
import type { Tick } from "../api/tick.ts";
import type { Loadable } from "../base/loadable.ts";
import type { MetricName } from "../state/attributes.ts";
import type { UnitRules } from "./row-rules.ts";
import { useWithRules } from "./rules.ts";
import { useServices } from "./services.ts";
import { useVersionedQuery } from "./versioned-query.ts";

export const UNIT_METRICS = [
  "gpu_util_ratio",
  "sm_active_ratio",
  "tensor_active_ratio",
  "dram_active_ratio",
  "power_watts",
  "memory_used_bytes",
  "gpu_temperature_celsius",
] as const satisfies readonly MetricName[];
export type UnitMetric = (typeof UNIT_METRICS)[number];

export interface Units {
  readonly snapshot: Snapshot;
  /** Null if the inventory changed faster than a matching tick could be fetched: no metrics are better than those of other units. */
  readonly tick: Tick | null;
  /** Rule results by row; absent until fetched. */
  readonly rules?: UnitRules;
}

export function useUnits(): Loadable<Units> {
  const units = useBareUnits();
  const value = useWithRules(units.value);
  return { ...units, value };
}

function useBareUnits(): Loadable<Units> {
  const { live } = useServices();
  const cache = useQueryClient();
  return useVersionedQuery<Units>({
    key: UNITS_KEY,
    follows: "both",
    async ask(client, signal, held, at) {
      if (at !== null) return fetchPast(cache, client, at);
      const units = await fetchUnits(client, UNIT_METRICS, held, signal);
      // Other units mean another layout, and nothing may move under the pointer.
      if (held && held.snapshot !== units.snapshot) await live.untilCalm(signal);
      return units;
    },
  });
}

const UNITS_KEY = ["units", UNIT_METRICS];
/** Prefetches the current units: they arrive while the view is loaded. */
export function fetchUnitsEarly(cache: QueryClient, client: Client): void {
  void cache.prefetchQuery({
    queryKey: UNITS_KEY,
    queryFn: async ({ signal }) => ({ version: "", value: await fetchUnits(client, UNIT_METRICS, undefined, signal) }),
  });
}

/** How long a prefetched picture may wait to be shown. */
const AHEAD_MS = 15_000;

/** Prefetches the picture of a past minute, for playback. */
export function usePrefetchUnits(): (at: number) => void {
  const { client } = useServices();
  const cache = useQueryClient();
  return useCallback((at) => void fetchPast(cache, client.at(at), at).catch(() => {}), [cache, client]);
}

function fetchPast(cache: QueryClient, client: Client, at: number): Promise<Units> {
  return cache.fetchQuery({
    queryKey: [...UNITS_KEY, at],
    queryFn: () => fetchUnits(client, UNIT_METRICS),
    staleTime: AHEAD_MS,
    gcTime: AHEAD_MS,
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
    // A restarted server counts versions from the start, so a cached snapshot may look newer.
    if (snapshot === held?.snapshot || tick.inventoryVersion > snapshot.inventoryVersion) {
      snapshot = await client.snapshot(signal);
    } else {
      tick = await client.tick(metrics, signal);
    }
  }
  if (isSameInventory(snapshot, tick)) return { snapshot, tick };
  // The cached pair is a moment old but consistent; without metrics the whole picture would be drawn as missing.
  return held?.tick ? held : { snapshot, tick: null };
}

function isSameInventory(snapshot: Snapshot, tick: Tick): boolean {
  return tick.inventoryVersion === snapshot.inventoryVersion && tick.rowCount === snapshot.rowCount;
}

export function findMetric(units: Units, metric: UnitMetric): Float32Array | null {
  return units.tick?.find(metric) ?? null;
}
