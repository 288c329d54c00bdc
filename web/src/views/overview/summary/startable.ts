// What could start now, by partition and machine type, and which of these places is most informative. Pure.

import type { PartitionSummary, Startable } from "../../../api/generated.ts";
import { formatCount, formatPlural } from "../../../base/format.ts";

export interface Place extends Startable {
  readonly partition: string;
  readonly isUp: boolean;
  /** Enough GPUs for a whole node are free, but no node is free: no whole-node job can start. */
  readonly isFragmented: boolean;
  readonly largestGpus: number;
}

export function listPlaces(
  partitions: readonly Pick<PartitionSummary, "name" | "is_up" | "largest_startable">[],
): readonly Place[] {
  return partitions.flatMap(({ name, is_up, largest_startable }) =>
    largest_startable.map((place) => ({
      ...place,
      partition: name,
      isUp: is_up,
      isFragmented: is_up && place.one_node_gpus < place.gpus_per_node && place.free >= place.gpus_per_node,
      largestGpus: Math.max(place.one_node_gpus, place.whole_node_gpus),
    })),
  );
}

/** The most fragmented place, by free GPUs; if none is fragmented, the one with most room. */
export function findKeyPlace(places: readonly Place[]): Place | null {
  const scattered = places.filter(({ isFragmented }) => isFragmented);
  if (scattered.length > 0) return maxBy(scattered, ({ free }) => free);
  return maxBy(places, ({ largestGpus }) => largestGpus);
}

function maxBy(places: readonly Place[], measure: (place: Place) => number): Place | null {
  return places.reduce<Place | null>(
    (best, place) => (best === null || measure(place) > measure(best) ? place : best),
    null,
  );
}

/** `no 8-GPU job can start although 64 GPUs are free`. */
export function describePlace(place: Place): string {
  if (!place.isUp) return "closed: no job can start";
  if (place.isFragmented) {
    return `no ${place.gpus_per_node}-GPU job can start although ${formatPlural(place.free, "GPU is", "GPUs are")} free`;
  }
  if (place.whole_nodes > 1) {
    return `${formatCount(place.whole_node_gpus)} GPUs on ${formatPlural(place.whole_nodes, "whole node")} can start`;
  }
  if (place.one_node_gpus === 0) return "no GPU is free";
  return `a job of ${formatPlural(place.one_node_gpus, "GPU")} can start`;
}

export function nameOf({ machine_type, partition }: Place): string {
  return machine_type === null ? partition : `${partition} · ${machine_type}`;
}
