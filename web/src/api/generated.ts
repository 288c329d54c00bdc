// Generated from openapi.json by `npm run codegen`; do not edit.
// The shapes of the server's answers. Times are Unix ms, ratios 0–1, missing is null.

/** Who held which unit when, and how we know. */
export interface AllocationAnswer {
  readonly confidence: number;
  readonly from_at: number;
  readonly source: AllocationSource;
  readonly to_at: number | null;
  readonly unit: string;
  readonly workload: string;
}

/** How we know who holds a unit, best first. */
export type AllocationSource = "scheduler_index" | "pod_resources" | "exporter_label" | "process" | "whole_node";

/** Which units to write. */
export interface ChosenUnits {
  readonly units: readonly string[];
}

/** The cluster in one line, now or (`is_past`) at a past minute, of which node and source states are not known. */
export interface ClusterSummary {
  readonly at: number;
  readonly cluster: string;
  readonly failing_sources: number | null;
  readonly gpu_util_ratio: number | null;
  readonly inventory_version: number;
  readonly is_demo: boolean;
  readonly is_past: boolean;
  readonly newest_sample_at: number | null;
  readonly nodes: number;
  readonly nodes_unavailable: number | null;
  readonly partitions: readonly PartitionSummary[];
  readonly paused: string | null;
  readonly power_watts: number | null;
  readonly running: number;
  readonly stranded: number;
  readonly tick_version: number;
  readonly units: UnitCounts;
  readonly waiting: number;
  readonly waiting_gpus: number;
}

/** Rows that shared one fate: not stored, or (`is_stored`) stored though odd; `meaning` is the reason in words. */
export interface DropAnswer {
  readonly count: number;
  readonly is_stored: boolean;
  readonly kind: string;
  readonly meaning: string | null;
  readonly reason: string;
}

/** Alive; `paused` says why nothing is stored now. */
export interface Health {
  readonly newest_sample_at: number | null;
  readonly paused: string | null;
  readonly status: string;
  readonly version: string;
}

/** What a search result is. */
export type HitKind = "workload" | "user" | "project" | "node";

/** A metric of the catalogue. */
export interface MetricAnswer {
  readonly aliases: readonly string[];
  readonly help: string;
  readonly is_summary: boolean;
  readonly kind: MetricKind;
  readonly label: string;
  readonly name: string;
  readonly unit: MetricUnit;
}

/** Whether a value stands for itself or only its increase means something. */
export type MetricKind = "gauge" | "counter";

/** Canonical units; the client formats by these. */
export type MetricUnit = "ratio" | "watts" | "joules" | "bytes" | "bytes_per_second" | "hertz" | "celsius" | "seconds" | "count";

/** A node in numbers. */
export interface NodeAnswer {
  readonly cpu_count: number | null;
  readonly driver_version: string | null;
  readonly features: readonly string[];
  readonly gpu_count: number;
  readonly gpus_allocated: number;
  readonly is_stale: boolean;
  readonly machine_type: string | null;
  readonly memory_bytes: number | null;
  readonly node: string;
  readonly partitions: readonly string[];
  readonly rack: string | null;
  readonly reason: string | null;
  readonly state: NodeState;
}

/** A node, and the workloads on it now. */
export interface NodeDetail {
  readonly node: NodeAnswer;
  readonly workloads: readonly WorkloadAnswer[];
}

/** A node's state for scheduling, reduced to what a reader must tell apart. */
export type NodeState = "idle" | "mixed" | "allocated" | "draining" | "drained" | "down" | "unknown";

/** One partition in numbers. A node in several partitions is counted in each. */
export interface PartitionSummary {
  readonly gpu_util_ratio: number | null;
  readonly is_up: boolean;
  readonly largest_free_block: number;
  readonly largest_startable: readonly Startable[];
  readonly machine_types: readonly string[];
  readonly name: string;
  readonly nodes: number;
  readonly running: number;
  readonly stranded: number;
  readonly units: UnitCounts;
  readonly waiting: number;
  readonly waiting_gpus: number;
}

/** What was wrong and what to do. */
export interface Problem {
  readonly code: string;
  readonly hint?: string | null;
  readonly message: string;
}

/** The body of every answer that is not a success. */
export interface ProblemAnswer {
  readonly error: Problem;
}

/** A view that somebody saved, for everybody. `document` is the page's own, with at least `version` and `title`. */
export interface SavedView {
  readonly document: Readonly<Record<string, unknown>>;
  readonly name: string;
  readonly title: string;
  readonly written_at: number;
}

/** All saved views by name; `start_view` is the name of one, or `builtin:…` for one of the page's own, or null. */
export interface SavedViews {
  readonly start_view: string | null;
  readonly views: readonly SavedView[];
}

/** One search result: what to open, and one line that tells it from the others. */
export interface SearchHit {
  readonly detail: string;
  readonly key: string;
  readonly kind: HitKind;
  readonly label: string;
}

/** Search results, best first. */
export interface SearchHits {
  readonly hits: readonly SearchHit[];
  readonly query: string;
}

/** What the sign-in form sends. */
export interface SignIn {
  readonly token: string;
}

/** One source that fails, or stands for all well ones of its kind. */
export interface SourceAnswer {
  readonly at: number;
  readonly hint: string | null;
  readonly is_ok: boolean;
  readonly message: string | null;
  readonly node: string | null;
  readonly source: string;
}

/** The sources of one kind: how many, how many fail, and the failing ones (the first 50). */
export interface SourceGroup {
  readonly failing: number;
  readonly failures: readonly SourceAnswer[];
  readonly kind: string;
  readonly last_at: number | null;
  readonly total: number;
}

/** Where the data comes from, how the sources are, what was dropped, what is kept. */
export interface Sources {
  readonly dropped: readonly DropAnswer[];
  readonly groups: readonly SourceGroup[];
  readonly paused: string | null;
  readonly samples_total: number;
  readonly store: StoreAnswer;
}

/** The view to open the page with: a saved one, `builtin:…` for one of the page's own, or null for its choice. */
export interface StartView {
  readonly name: string | null;
}

/** What could start at once on one machine type of a partition; defined in `query/placement.py`. */
export interface Startable {
  readonly free: number;
  readonly gpus_per_node: number;
  readonly machine_type: string | null;
  readonly one_node_gpus: number;
  readonly smallest_request: number | null;
  readonly stranded: number;
  readonly whole_node_gpus: number;
  readonly whole_nodes: number;
}

/** What the metric store holds. */
export interface StoreAnswer {
  readonly bytes_on_disk: number | null;
  readonly engine: string;
  readonly newest_at: number | null;
  readonly oldest_at: number | null;
  readonly samples: number | null;
}

/** The cluster at even steps of its history, as columns of one length; counts are those of the picture at `time_ms`. */
export interface Timeline {
  readonly allocated_gpus: readonly number[];
  readonly end: number;
  readonly gpu_util_ratio: readonly (number | null)[];
  readonly oldest_at: number | null;
  readonly start: number;
  readonly step_ms: number;
  readonly time_ms: readonly number[];
  readonly total_gpus: number;
  readonly waiting_gpus: readonly number[];
}

/** Units by state; `total` leaves requested ones out. */
export interface UnitCounts {
  readonly allocated: number;
  readonly free: number;
  readonly stale: number;
  readonly total: number;
  readonly unavailable: number;
}

/** A view as the page describes it: any JSON object of at most 64 KiB with these two fields. */
export interface ViewDocument {
  readonly title: string;
  /** Of the document's format. */
  readonly version: number;
  readonly [key: string]: unknown;
}

/** GPU-hours of [start, end) that were held, measured, and held idle; defined in `query/waste.py`. */
export interface WasteAnswer {
  readonly end: number;
  readonly held_gpu_hours: number;
  readonly idle_below_ratio: number;
  readonly measured_gpu_hours: number;
  readonly start: number;
  readonly wasted_gpu_hours: number | null;
}

/** A workload with what follows from its times. */
export interface WorkloadAnswer {
  readonly eligible_at: number | null;
  readonly ended_at: number | null;
  readonly exit_code: number | null;
  readonly exit_signal: number | null;
  readonly expected_start_at: number | null;
  readonly experiment: string | null;
  readonly gpu_hours: number | null;
  readonly gpus_requested: number;
  readonly kind: WorkloadKind;
  readonly name: string | null;
  readonly nodes: readonly string[];
  readonly nodes_requested: number | null;
  readonly partition: string | null;
  readonly pending_reason: string | null;
  readonly pending_reason_text: string | null;
  readonly priority: number | null;
  readonly project: string | null;
  readonly qos: string | null;
  readonly resource_type: string | null;
  readonly restarts: number;
  readonly run_s: number | null;
  readonly started_at: number | null;
  readonly state: WorkloadState;
  readonly submitted_at: number | null;
  readonly tags: Readonly<Record<string, string>>;
  readonly time_limit_s: number | null;
  readonly user: string | null;
  readonly wait_s: number | null;
  readonly workload: string;
}

/** A workload and the units it held. */
export interface WorkloadDetail {
  readonly allocations: readonly AllocationAnswer[];
  readonly workload: WorkloadAnswer;
}

/** How a workload came to be. */
export type WorkloadKind = "job" | "session" | "run";

/** A page of workloads and how many match in all. */
export interface WorkloadList {
  readonly limit: number;
  readonly offset: number;
  readonly total: number;
  readonly workloads: readonly WorkloadAnswer[];
}

/** Where a workload is in its life. The first three are active; the rest have ended. */
export type WorkloadState = "waiting" | "running" | "suspended" | "completed" | "failed" | "cancelled" | "timeout" | "out_of_memory" | "node_failed" | "preempted" | "unknown";
