// Metrics and statistics beside those that every page has: asked for only while something shows them. A server that does
// not know one of them says so, and the page goes on without.

import { useEffect, useMemo, useRef } from "react";
import type { Tick } from "../api/tick.ts";
import type { Loadable } from "../base/loadable.ts";
import { findAttribute } from "../state/attributes.ts";
import { UNIT_METRICS, type Units } from "./units.ts";
import { useVersionedQuery } from "./versioned-query.ts";

/** Which of these attributes must be asked for; in order, each once. */
export function listFurther(attributes: Iterable<string>): readonly string[] {
  const known: readonly string[] = UNIT_METRICS;
  const isFurther = (name: string) => {
    const attribute = findAttribute(name);
    return attribute?.kind === "number" && attribute.metric !== null && !known.includes(name);
  };
  return [...new Set(attributes)].filter(isFurther).sort();
}

export function useFurtherMetrics(metrics: readonly string[]): Loadable<Tick> {
  return useVersionedQuery<Tick>({
    key: ["further-metrics", metrics],
    follows: "both",
    enabled: metrics.length > 0,
    ask: (client, signal) => client.tick(metrics, signal),
  });
}

/**
 * The units with what was asked for. While one of the two is of an older inventory, what was shown last stays: otherwise
 * every change of the inventory would draw all values as missing for a moment.
 */
export function useWithMetrics(
  units: Units | undefined,
  metrics: readonly string[],
  further: Loadable<Tick>,
): Units | undefined {
  const last = useRef<{ readonly metrics: readonly string[]; readonly units: Units } | null>(null);
  const tick = metrics.length > 0 ? further.value : undefined;
  const joined = useMemo(() => units && joinMetrics(units, tick), [units, tick]);
  useEffect(() => {
    last.current = joined ? { metrics, units: joined } : last.current;
  }, [joined, metrics]);
  if (joined) return joined;
  const isWaiting = metrics.length > 0 && further.problem === null && last.current?.metrics === metrics;
  return isWaiting ? last.current?.units : units;
}

/** Null where they do not fit one another. */
export function joinMetrics(units: Units, further: Tick | undefined): Units | null {
  const { snapshot, tick } = units;
  if (further === undefined || tick === null) return null;
  if (further.inventoryVersion !== snapshot.inventoryVersion || further.rowCount !== snapshot.rowCount) return null;
  return { ...units, tick: { ...tick, find: (metric) => tick.find(metric) ?? further.find(metric) } };
}
