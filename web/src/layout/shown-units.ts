// Which rows of the snapshot a view shows: GPUs, requested GPUs, or one square per waiting workload. Pure.

import type { ShownUnits } from "./grammar.ts";

/** The state of a GPU that a waiting workload requests. */
const REQUESTED = "requested";

interface Names {
  readonly codes: ArrayLike<number>;
  readonly names: readonly (string | null)[];
}

/** 1 for each row that is shown. Of the GPUs that a workload requests, `waiting` shows the first. */
export function markShown(
  shown: ShownUnits,
  rowCount: number,
  states: Names | null,
  workloads: Names | null,
): Uint8Array {
  if (shown === "all") return new Uint8Array(rowCount).fill(1);
  const marks = new Uint8Array(rowCount);
  const requested = states?.names.indexOf(REQUESTED) ?? -1;
  const isCounted = new Uint8Array(workloads?.names.length ?? 0);
  for (let row = 0; row < rowCount; row += 1) {
    const isRequested = requested >= 0 && states?.codes[row] === requested;
    if (isRequested === (shown === "gpus")) continue;
    if (shown === "waiting" && workloads) {
      const workload = workloads.codes[row] ?? 0;
      if (isCounted[workload] === 1) continue;
      isCounted[workload] = 1;
    }
    marks[row] = 1;
  }
  return marks;
}
