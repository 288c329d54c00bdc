// Metrics and statistics that are not part of every tick: requested only while something shows them. If the server does
// not know one, the page reports it and continues without.

import { useEffect, useMemo, useRef } from "react";
import type { Tick } from "../api/tick.ts";
import type { Loadable } from "../base/loadable.ts";
import { findAttribute } from "../state/attributes.ts";
import { UNIT_METRICS, type Units } from "./units.ts";
import { useVersionedQuery } from "./versioned-query.ts";

/** Which of these attributes need an extra request; sorted, each once. */
export function listExtraMetrics(attributes: Iterable<string>): readonly string[] {
  const usual: readonly string[] = UNIT_METRICS;
  const isExtra = (name: string) => {
    const attribute = findAttribute(name);
    return attribute?.kind === "number" && attribute.metric !== null && !usual.includes(name);
  };
  return [...new Set(attributes)].filter(isExtra).sort();
}

export function useExtraMetrics(metrics: readonly string[]): Loadable<Tick> {
  return useVersionedQuery<Tick>({
    key: ["extra-metrics", metrics],
    follows: "both",
    enabled: metrics.length > 0,
    ask: (client, signal) => client.tick(metrics, signal),
  });
}

/**
 * The units with the requested metrics. While one of the two belongs to an older inventory, the previous result stays:
 * otherwise every change of the inventory would briefly draw all values as missing.
 */
export function useWithMetrics(
  units: Units | undefined,
  metrics: readonly string[],
  extra: Loadable<Tick>,
): Units | undefined {
  const last = useRef<{ readonly metrics: readonly string[]; readonly units: Units } | null>(null);
  const tick = metrics.length > 0 ? extra.value : undefined;
  const joined = useMemo(() => units && joinMetrics(units, tick), [units, tick]);
  useEffect(() => {
    last.current = joined ? { metrics, units: joined } : last.current;
  }, [joined, metrics]);
  if (joined) return joined;
  const isWaiting = metrics.length > 0 && extra.problem === null && last.current?.metrics === metrics;
  return isWaiting ? last.current?.units : units;
}

/** Null if they belong to different inventories. */
export function joinMetrics(units: Units, extra: Tick | undefined): Units | null {
  const { snapshot, tick } = units;
  if (extra === undefined || tick === null) return null;
  if (extra.inventoryVersion !== snapshot.inventoryVersion || extra.rowCount !== snapshot.rowCount) return null;
  return { ...units, tick: { ...tick, find: (metric) => tick.find(metric) ?? extra.find(metric) } };
}
