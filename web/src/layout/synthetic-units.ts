// Seeded units of a synthetic cluster as columns, for tests and benchmarks of the layout: 8 GPUs a node, workloads of 1 to
// 64 GPUs that do not stay within nodes, a tenth free, a queue.

import type { AttributeValues, NameValues, UnitColumns } from "./attributes.ts";

const WORKLOAD_SIZES = [1, 1, 1, 2, 2, 4, 8, 8, 16, 32, 64];
const GPUS_PER_NODE = 8;

/** Marsaglia's xorshift32: the same numbers everywhere. */
export function createRandom(seed: number): () => number {
  let state = seed | 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

export function makeNames(values: readonly (string | null)[]): NameValues {
  const names: (string | null)[] = [null];
  const codeOf = new Map<string, number>();
  const codes = Uint32Array.from(values, (name) => {
    if (name === null) return 0;
    const code = codeOf.get(name) ?? names.push(name) - 1;
    codeOf.set(name, code);
    return code;
  });
  return { codes, names };
}

/** `gpuCount` GPUs and, after them, a queue of a tenth as many. */
export function makeSyntheticUnits(gpuCount: number, seed = 7): UnitColumns {
  const random = createRandom(seed);
  const rowCount = gpuCount + Math.ceil(gpuCount / 10);
  const workloads = makeWorkloads(rowCount, gpuCount, random);
  const pick = (row: number, of: (workload: number) => string) => {
    const workload = workloads[row] ?? null;
    return workload === null ? null : of(workload);
  };
  const column = (value: (row: number) => string | null) =>
    makeNames(Array.from({ length: rowCount }, (_, row) => value(row)));
  const userOf = (workload: number) => (workload * 7919) % 200;
  const isGpu = (row: number) => row < gpuCount;
  const nodeOf = (row: number) => Math.floor(row / GPUS_PER_NODE);
  const numbers = (value: (row: number) => number) => Float32Array.from({ length: rowCount }, (_, row) => value(row));
  const attributes: readonly (readonly [string, AttributeValues])[] = [
    ["unit", column((row) => (isGpu(row) ? `gpu-${nodeOf(row)}:${row % GPUS_PER_NODE}` : `queue#${row}`))],
    ["node", column((row) => (isGpu(row) ? `gpu-${nodeOf(row)}` : null))],
    ["partition", column((row) => ["a100-large", "a100-small", "v100", "h200"][(nodeOf(row) % 7) % 4] ?? null)],
    ["node_partitions", column((row) => ["a100-large", "a100-small", "v100", "h200"][(nodeOf(row) % 7) % 4] ?? null)],
    ["unit_state", column((row) => (isGpu(row) ? (workloads[row] === null ? "free" : "allocated") : "requested"))],
    ["workload", column((row) => pick(row, (workload) => `slurm:${100_000 + workload}`))],
    ["user", column((row) => pick(row, (workload) => `user-${userOf(workload)}`))],
    ["project", column((row) => pick(row, (workload) => `project-${userOf(workload) % 23}`))],
    ["waits_for", column((row) => (isGpu(row) ? null : "free GPUs"))],
    ["resource_type", column((row) => pick(row, (workload) => `A100-${WORKLOAD_SIZES[workload % 11]}`))],
    ["gpu_util_ratio", numbers((row) => (isGpu(row) && workloads[row] !== null ? random() : Number.NaN))],
    ["wait_s", numbers((row) => (isGpu(row) ? Number.NaN : ((workloads[row] ?? 0) * 997) % 86_400))],
  ];
  return { rowCount, attributes: new Map(attributes) };
}

/** The number of the workload that holds or wants each row; a free GPU has none. */
function makeWorkloads(rowCount: number, gpuCount: number, random: () => number): readonly (number | null)[] {
  const workloads: (number | null)[] = [];
  for (let workload = 0; workloads.length < rowCount; workload += 1) {
    const size = WORKLOAD_SIZES[workload % WORKLOAD_SIZES.length] ?? 1;
    const isFree = workloads.length < gpuCount && random() < 0.1;
    for (let unit = 0; unit < size; unit += 1) workloads.push(isFree ? null : workload);
  }
  return workloads.slice(0, rowCount);
}
