// Generated from the server's catalogues by `make codegen`; do not edit.
// What the server measures and simulates: metrics (`model/metrics.py`), policies, backfills, placements (`simulate/`).

/** Canonical units of metrics. */
export type Quantity = "ratio" | "watts" | "joules" | "bytes" | "bytes_per_second" | "hertz" | "celsius" | "seconds" | "count";

/** Metrics of units that are sampled again and again, by unit and then as the server lists them. */
export const METRICS = {
  gpu_util_ratio: { label: "GPU utilization", unit: "ratio" },
  sm_active_ratio: { label: "SM active", unit: "ratio" },
  sm_occupancy_ratio: { label: "SM occupancy", unit: "ratio" },
  tensor_active_ratio: { label: "Tensor active", unit: "ratio" },
  dram_active_ratio: { label: "DRAM active", unit: "ratio" },
  graphics_active_ratio: { label: "Engine active", unit: "ratio" },
  fp64_active_ratio: { label: "FP64 active", unit: "ratio" },
  fp32_active_ratio: { label: "FP32 active", unit: "ratio" },
  fp16_active_ratio: { label: "FP16 active", unit: "ratio" },
  memory_copy_util_ratio: { label: "Memory copy", unit: "ratio" },
  encoder_util_ratio: { label: "Encoder", unit: "ratio" },
  decoder_util_ratio: { label: "Decoder", unit: "ratio" },
  power_watts: { label: "Power", unit: "watts" },
  memory_used_bytes: { label: "Memory used", unit: "bytes" },
  memory_free_bytes: { label: "Memory free", unit: "bytes" },
  pcie_tx_bytes_per_second: { label: "PCIe sent", unit: "bytes_per_second" },
  pcie_rx_bytes_per_second: { label: "PCIe received", unit: "bytes_per_second" },
  nvlink_tx_bytes_per_second: { label: "NVLink sent", unit: "bytes_per_second" },
  nvlink_rx_bytes_per_second: { label: "NVLink received", unit: "bytes_per_second" },
  sm_clock_hertz: { label: "SM clock", unit: "hertz" },
  memory_clock_hertz: { label: "Memory clock", unit: "hertz" },
  gpu_temperature_celsius: { label: "GPU temperature", unit: "celsius" },
  memory_temperature_celsius: { label: "Memory temperature", unit: "celsius" },
  xid_error_code: { label: "Last XID", unit: "count" },
} as const satisfies Readonly<Record<string, { readonly label: string; readonly unit: Quantity }>>;

/** `label`: short name in tables; `title`: name in menus. */
export interface Choice {
  readonly name: string;
  readonly label: string;
  readonly title: string;
}

/** Orders of a queue. */
export const POLICIES: readonly Choice[] = [
  { name: "ageing", label: "ageing", title: "Ageing" },
  { name: "f1", label: "F1", title: "F1" },
  { name: "fair-share", label: "fair share", title: "Fair share" },
  { name: "fcfs", label: "FCFS", title: "First come, first served" },
  { name: "ljf", label: "LJF", title: "Longest first" },
  { name: "size-priority", label: "size priority", title: "Largest first (size-priority)" },
  { name: "sjf", label: "SJF", title: "Shortest first" },
  { name: "unicep", label: "UNICEP", title: "UNICEP" },
  { name: "wfp3", label: "WFP3", title: "WFP3" },
];

/** Ways of backfilling. */
export const BACKFILLS: readonly Choice[] = [
  { name: "none", label: "no backfilling", title: "None" },
  { name: "first-fit", label: "first fit", title: "First fit" },
  { name: "easy", label: "EASY", title: "EASY" },
  { name: "easy-sjbf", label: "EASY-SJBF", title: "EASY, shortest first (SJBF)" },
  { name: "easy++", label: "EASY++", title: "EASY++" },
  { name: "conservative", label: "conservative", title: "Conservative" },
  { name: "relaxed", label: "relaxed", title: "Relaxed" },
  { name: "adaptive", label: "adaptive", title: "Adaptive relaxed" },
  { name: "frugal", label: "frugal", title: "Frugal: smallest first" },
];

/** What a what-if may choose in place of the scheduler's. */
export const LIVE_BACKFILLS: readonly Choice[] = [
  { name: "none", label: "no backfilling", title: "None" },
  { name: "first-fit", label: "first fit", title: "First fit" },
  { name: "easy-sjbf", label: "EASY-SJBF", title: "EASY, shortest first (SJBF)" },
  { name: "relaxed", label: "relaxed", title: "Relaxed" },
  { name: "adaptive", label: "adaptive", title: "Adaptive relaxed" },
  { name: "frugal", label: "frugal", title: "Frugal: smallest first" },
];

/** Which of the nodes with room a workload gets. */
export const PLACEMENTS: readonly Choice[] = [
  { name: "best-fit", label: "best fit", title: "Best fit" },
  { name: "dot-product", label: "dot product", title: "Dot product (Tetris)" },
  { name: "fgd", label: "fgd", title: "Least fragmentation (FGD)" },
  { name: "first-fit", label: "first fit", title: "First node in order" },
  { name: "gpu-clustering", label: "gpu clustering", title: "GPU clustering" },
  { name: "gpu-packing", label: "gpu packing", title: "GPU packing" },
  { name: "least-allocated", label: "least allocated", title: "Emptiest node" },
  { name: "most-allocated", label: "most allocated", title: "Fullest node" },
  { name: "random", label: "random", title: "Random" },
];

/** What run times are taken for. */
export const ESTIMATES = ["request", "actual", "predicted", "boosted", "elapsed-aware"] as const;

/** Whose semantics a simulation follows. */
export const RULE_PRESETS = ["clusterscape", "pyss", "dirlab", "cqsim", "poster"] as const;
