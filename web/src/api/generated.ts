// Generated from openapi.json by `npm run codegen`; do not edit.
// The shapes of the server's answers. Times are Unix ms, ratios 0–1, missing is null.

/** Somebody who came in, or may. Role and projects of OIDC and proxy accounts are those of the last sign-in. */
export interface AccountAnswer {
  readonly created_at: number;
  readonly is_disabled: boolean;
  readonly login: string;
  readonly projects: readonly string[];
  readonly role: Role;
  readonly signed_in_at: number | null;
  readonly title: string | null;
  readonly way: Way;
}

/** What to change; what is not given stays. Only `is_disabled` can be changed of others than local accounts. */
export interface AccountChange {
  readonly is_disabled?: boolean | null;
  readonly password?: string | null;
  readonly projects?: readonly string[] | null;
  readonly role?: Role | null;
  readonly title?: string | null;
}

/** A statistic of the whole workload, from those of its units. */
export type Across = "spread" | "least" | "most" | "average";

/** A workload that goes first, and why in words. `parts`: what its priority is made of, where the scheduler tells. */
export interface AheadRow {
  readonly gpus: number;
  readonly parts: readonly PriorityPart[];
  readonly planned_at: number | null;
  readonly priority: number | null;
  readonly user: string | null;
  readonly why: string;
  readonly workload: string;
}

/** All channels. `unposted`: turns that wait in memory because the disk takes none. */
export interface AlertState {
  readonly channels: readonly ChannelAnswer[];
  readonly unposted: number;
}

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

/** What to ask for instead. `change`: fewer_gpus, shorter or partition. */
export interface Alternative {
  readonly change: string;
  readonly start: StartForecast;
}

/** Submissions. Hours and weekdays are those of `timezone`; null where the trace does not say when it began. `jobs_by_weekday_hour`: 7 × 24, Monday first. `jobs_per_hour_by_*`: mean of the hours of that kind; the intervals come from how much such hours (and such days) differ from one another, not from a Poisson law, which these never keep. `burstiness`: standard deviation over mean of the gaps; 1 where submissions are independent. */
export interface Arrivals {
  readonly burstiness: number | null;
  readonly busiest_to_quietest_hour: number | null;
  readonly gap_s: ValueSpread;
  readonly jobs_by_weekday_hour: readonly (readonly number[])[] | null;
  readonly jobs_per_hour_by_hour: readonly (Measured | null)[] | null;
  readonly jobs_per_hour_by_weekday: readonly (Measured | null)[] | null;
  readonly timezone: string;
}

/** Entries, newest first. `next`: hand it in as `before` for the older ones; null: these were the last. */
export interface AuditPage {
  readonly entries: readonly AuditRow[];
  readonly next: string | null;
}

/** One thing that somebody did or tried. `way`: static, local, oidc, proxy, token:KEY, here or command. */
export interface AuditRow {
  readonly action: string;
  readonly actor: string | null;
  readonly address: string | null;
  readonly at: number;
  readonly details: Readonly<Record<string, string>>;
  readonly key: string;
  readonly outcome: Outcome;
  readonly target: string | null;
  readonly way: string | null;
}

/** How a channel of alerts does. Counts are of messages unless they say turns (starts and stops of violations). */
export interface ChannelAnswer {
  readonly attempts: number;
  readonly delivered: number;
  readonly delivered_at: number | null;
  readonly failing_since: number | null;
  readonly is_configured: boolean;
  readonly is_lasting: boolean;
  readonly kind: string;
  readonly last_error: string | null;
  readonly name: string;
  readonly next_attempt_at: number | null;
  readonly waiting: number;
  readonly waiting_turns: number;
}

/** What else to ask for, and when it would start then by the same plan. `cost`: share of the request given up. */
export interface CheaperChange {
  readonly cost: number;
  readonly gain_s: number;
  readonly gpus_per_node: number;
  readonly kind: string;
  readonly limit_s: number;
  readonly nodes: number;
  readonly partition: string;
  readonly start_at: number;
  readonly words: string;
}

/** Which units to write. */
export interface ChosenUnits {
  readonly units: readonly string[];
}

/** What the jobs say about a claim. */
export type ClaimVerdict = "supported" | "not_supported" | "cannot_tell";

/** Jobs whose size or run time lies in [`low`, `high`]: how many were unsuccessful, and how many failed outright. */
export interface ClassEnds {
  readonly failed: Measured;
  readonly high: number;
  readonly jobs: number;
  readonly low: number;
  readonly unsuccessful: Measured;
}

/** Waits, in seconds, of the jobs whose size (or queue) lies in [`low`, `high`]. */
export interface ClassWaits {
  readonly high: number;
  readonly jobs: number;
  readonly low: number;
  readonly mean_s: number;
  readonly p25_s: number;
  readonly p50_s: number;
  readonly p75_s: number;
  readonly p95_s: number;
}

/** What was found in the rows of a trace and done about it. `lines` are examples, not all. */
export interface CleaningNote {
  readonly action: "dropped" | "repaired" | "kept";
  readonly count: number;
  readonly lines?: readonly number[];
  readonly reason: string;
}

/** What the GPUs of a cluster share and the others do not. `gain`: adjusted mutual information, 0–1. */
export interface ClusterExplanation {
  readonly attribute: string;
  readonly gain: number;
  readonly p_value: number;
  readonly precision: number;
  readonly recall: number;
  readonly sentence: string;
  readonly values: readonly string[];
}

/** The cluster in one line, now or (`is_past`) at a past minute, of which the states of sources are not known. `nodes_unavailable` is null from before states of nodes were noted. */
export interface ClusterSummary {
  readonly at: number;
  readonly awaited: readonly string[];
  readonly cluster: string;
  readonly failing_sources: number | null;
  readonly gpu_util_ratio: number | null;
  readonly hides_names: boolean;
  readonly inventory_version: number;
  readonly is_demo: boolean;
  readonly is_past: boolean;
  readonly newest_sample_at: number | null;
  readonly nodes: number;
  readonly nodes_unavailable: number | null;
  readonly open_questions: number | null;
  readonly partitions: readonly PartitionSummary[];
  readonly paused: string | null;
  readonly power_watts: number | null;
  readonly reservations: readonly ReservationAnswer[];
  readonly running: number;
  readonly stranded: number;
  readonly tick_version: number;
  readonly units: UnitCounts;
  readonly waiting: number;
  readonly waiting_gpus: number;
}

/** A rank in a collective: when it came, how long it waited for the last, how long the transfer took. */
export interface CollectiveMember {
  readonly arrive_ns: number;
  readonly end_ns: number;
  readonly is_last: boolean;
  readonly rank: number;
  readonly span: number;
  readonly start_ns: number;
  readonly transfer_ns: number;
  readonly wait_ns: number;
}

/** What somebody wrote about a workload's violations. */
export interface CommentAnswer {
  readonly author: string;
  readonly created_at: number;
  readonly key: string;
  readonly text: string;
  readonly workload: string;
}

export type Completion = readonly [string, number, string];

/** A text being typed, and where. */
export interface CompletionQuestion {
  readonly cursor?: number | null;
  readonly text: string;
}

/** How often waits fell into intervals of a nominal level; `low` and `high`: Wilson's 95 % interval of that share. */
export interface Coverage {
  readonly covered: number;
  readonly high: number;
  readonly jobs: number;
  readonly low: number;
  readonly nominal: number;
}

/** A metric that can be looked at; `has_samples`: the workload's GPUs have it. */
export interface DiagnosedMetric {
  readonly has_samples: boolean;
  readonly label: string;
  readonly name: string;
  readonly unit: MetricUnit;
}

/** One GPU of the workload. `cluster` null: it cannot be compared; `odd_rank` 1 is the oddest of all, odd or not. `rules` stand in the order of the rule bar. `held_to` null: it is still held. */
export interface DiagnosedUnit {
  readonly cluster: number | null;
  readonly global_rank: number | null;
  readonly held_from: number;
  readonly held_to: number | null;
  readonly index: number | null;
  readonly local_rank: number | null;
  readonly node: string | null;
  readonly odd_rank: number | null;
  readonly rules: readonly UnitRule[];
  readonly unit: string;
}

/** One workload, diagnosed over a window of its life. `linkage` is SciPy's (n − 1) × 4 over the units of clusters in the order of `compared`; `leaves` is the order of the dendrogram; `heights_for_counts[k − 1]` cuts it into k clusters. `gpu_hours` and what follows are those of the window. */
export interface DiagnosisAnswer {
  readonly by: "histogram" | "euclidean" | "correlation";
  readonly clusters: readonly GpuCluster[];
  readonly compared: readonly string[];
  readonly cut_height: number;
  readonly cut_kind: "automatic" | "height" | "count";
  readonly ended_at: number | null;
  readonly energy_from: EnergySource | null;
  readonly energy_joules: number | null;
  readonly findings: readonly FindingAnswer[];
  readonly gpu_hours: number;
  readonly gpus: number;
  readonly heights_for_counts: readonly number[];
  readonly layout: Readonly<Record<string, number>>;
  readonly leaves: readonly string[];
  readonly life: TimeWindow | null;
  readonly linkage: readonly (readonly number[])[];
  readonly machine_types: readonly string[];
  readonly metric: string | null;
  readonly metrics: readonly DiagnosedMetric[];
  readonly name: string | null;
  readonly nodes: number;
  readonly notes: readonly string[];
  readonly odd: readonly OddUnit[];
  readonly odd_note: string | null;
  readonly partition: string | null;
  readonly project: string | null;
  readonly started_at: number | null;
  readonly state: WorkloadState;
  readonly step_ms: number | null;
  readonly units: readonly DiagnosedUnit[];
  readonly user: string | null;
  readonly wasted_gpu_hours: number | null;
  readonly window: TimeWindow | null;
  readonly workload: string;
}

/** `shares[i]` of all values are at most `values[i]`; at most 200 points, exact at each. */
export interface DistributionFunction {
  readonly shares: readonly number[];
  readonly values: readonly number[];
}

/** Rows that shared one fate: not stored, or (`is_stored`) stored though odd; `meaning` is the reason in words. */
export interface DropAnswer {
  readonly count: number;
  readonly is_stored: boolean;
  readonly kind: string;
  readonly meaning: string | null;
  readonly reason: string;
}

/** The last 30 % of jobs by submission that ran longer than `elapsed_s`, a quarter of the earlier jobs' mean run time. Each is predicted by the median of earlier jobs of its user and size (else of its user, else of all; five at least): all of them, raised to the elapsed time (`unaware`), or only those that ran past it (`aware`). Accuracy: the smaller of prediction and run time over the larger, mean over jobs. `gain`: aware minus unaware; interval for these jobs, and with users resampled. */
export interface ElapsedTest {
  readonly aware_accuracy: number;
  readonly elapsed_s: number;
  readonly gain: Measured;
  readonly gain_by_user: Measured | null;
  readonly jobs: number;
  readonly request_accuracy: number | null;
  readonly unaware_accuracy: number;
}

/** Whether jobs of the upper class end unsuccessfully more often than those of the lowest. `rise`: highest class minus lowest; interval for these jobs (Newcombe). `rise_by_user`: the same, users resampled; null where users are not known. `trend_z`: Cochran and Armitage's statistic; above 1.96 the share rises with the class. `rank_correlation`: Spearman's, of the value itself with being unsuccessful. `falls_at`: the first class whose share is surely below the one before. */
export interface EndTrend {
  readonly classes: readonly ClassEnds[];
  readonly failed_rise: Measured | null;
  readonly failed_rise_by_user: Measured | null;
  readonly falls_at: number | null;
  readonly rank_correlation: number | null;
  readonly rise: Measured | null;
  readonly rise_by_user: Measured | null;
  readonly trend_z: number | null;
}

/** How the energy is known. */
export type EnergySource = "counter" | "power";

/** A mean over `count` repeats. `low` and `high` bound the true mean at 95 % (Student's t); null for one repeat. */
export interface Estimate {
  readonly count: number;
  readonly high: number | null;
  readonly low: number | null;
  readonly mean: number;
}

/** What happened to a workload. */
export type EventKind = "start" | "end" | "violation" | "xid" | "cotenant_in" | "cotenant_out" | "annotation";

/** An execution that is over, while the workload went on: requeued, preempted or resized. */
export interface ExecutionAnswer {
  readonly ended_at: number;
  readonly gpu_hours: number;
  readonly gpus: number;
  readonly is_estimated: boolean;
  readonly run_s: number;
  readonly scheduler_state: string | null;
  readonly started_at: number;
  readonly state: WorkloadState;
  readonly suspended_s: number;
}

/** `lost_unit_hours`: used by jobs that ended unsuccessfully. `user_share_p*`: quantiles over users with 10 jobs or more. `worst_tenth_share`: the share of all unsuccessful jobs that the tenth of users with most of them has. */
export interface Failures {
  readonly by_run_time: EndTrend;
  readonly by_size: EndTrend;
  readonly lost_share: number | null;
  readonly lost_unit_hours: number;
  readonly statuses: readonly StatusShare[];
  readonly unknown_jobs: number;
  readonly unknown_share: number;
  readonly user_share_p25: number | null;
  readonly user_share_p50: number | null;
  readonly user_share_p75: number | null;
  readonly users: readonly UserEnds[];
  readonly worst_tenth_share: number | null;
}

/** A rule that the node itself, or one of its GPUs (`unit`), broke; `until` is null while it does. */
export interface FaultAnswer {
  readonly readings: string;
  readonly rule: string;
  readonly rule_name: string;
  readonly severity: Severity;
  readonly since: number;
  readonly unit: string | null;
  readonly until: number | null;
}

/** A conclusion in words, with its size and its evidence. */
export interface FindingAnswer {
  readonly end_at: number;
  readonly kind: FindingKind;
  readonly metrics: readonly string[];
  readonly numbers: Readonly<Record<string, FindingNumber>>;
  readonly reason: string;
  readonly severity: Severity;
  readonly size: number | null;
  readonly size_unit: SizeUnit;
  readonly start_at: number;
  readonly title: string;
  readonly units: readonly string[];
}

/** What was found. */
export type FindingKind = "imbalance" | "slow_node" | "periodic_dips" | "stall" | "memory_growth" | "throttling" | "communication_bound" | "idle_tail" | "odd_gpu";

/** An estimate with its 95 % interval; null where it is not bounded or not known. */
export interface FindingNumber {
  readonly high: number | null;
  readonly low: number | null;
  readonly unit: string;
  readonly value: number | null;
}

/** The execution flow; nodes in the order of execution. `is_recorded`: from an operator graph, else from spans of one rank per stage in the typical step; `is_captured`: with the modules of the run. `opened`: what is open, as it can be asked for. `at`: the node of the span that was asked for, null where there is none. */
export interface FlowAnswer {
  readonly at: number | null;
  readonly blocks: readonly FlowBlock[];
  readonly edges: readonly FlowEdge[];
  readonly is_captured: boolean;
  readonly is_recorded: boolean;
  readonly namespaces: readonly FlowNamespace[];
  readonly nodes: readonly FlowNode[];
  readonly opened: readonly string[];
  readonly operators: number;
  readonly stages: readonly TraceStage[];
}

/** Operators of one stage between two messages; `after`: blocks it has to wait for, all of lower number. */
export interface FlowBlock {
  readonly after: readonly number[];
  readonly operators: number;
  readonly stage: number | null;
}

/** Edges of one class from one node to a later one. `shard`: into how many parts each dimension of the tensor is split. */
export interface FlowEdge {
  readonly count: number;
  readonly edge_class: "data" | "activation_gradient" | "update_state" | "load" | "depend" | "hub" | "send_receive" | "sequence";
  readonly is_long: boolean;
  readonly shard: readonly number[] | null;
  readonly source: number;
  readonly target: number;
}

/** What part of the parallel strategy an operator is. */
export type FlowMark = "pp" | "tp" | "dp" | "ep" | "redistribution" | "gradient_aggregation" | "communication";

/** How many operators of a node are part of the parallel strategy. */
export interface FlowMarks {
  readonly count: number;
  readonly mark: FlowMark;
}

/** The module that a node is, or lies in, where the run was captured; `path` as the model names it, empty: itself. */
export interface FlowModule {
  readonly class_name: string;
  readonly inputs: readonly FlowTensor[];
  readonly outputs: readonly FlowTensor[];
  readonly parameters: readonly FlowTensor[];
  readonly path: string;
}

/** A namespace that is open. */
export interface FlowNamespace {
  readonly namespace: number;
  readonly operators: number;
  readonly path: string;
}

/** An operator, a closed namespace, or operators that only order others; `count` of them stacked. `opens`: what to add to `open` to see inside. `matches`: operators with the searched text. `span`: the longest; times are null where the trace has no spans of it. */
export interface FlowNode {
  readonly block: number;
  readonly count: number;
  readonly data_type: string | null;
  readonly duration_ns: number | null;
  readonly end_ns: number | null;
  readonly kind: "operator" | "namespace" | "ordering";
  readonly label: string;
  readonly marks: readonly FlowMarks[];
  readonly matches: number;
  readonly message: string | null;
  readonly module: FlowModule | null;
  readonly name: string | null;
  readonly namespace: string;
  readonly opens: string | null;
  readonly operators: number;
  readonly parent: number | null;
  readonly shape: string | null;
  readonly shards: readonly (readonly number[])[] | null;
  readonly span: number | null;
  readonly start_ns: number | null;
  readonly types: Readonly<Record<string, number>>;
}

/** A parameter of a module, or what goes in or comes out: its shape over all ranks, into how many parts each dimension is split (null: not known), and over what. */
export interface FlowTensor {
  readonly name: string;
  readonly placement: string | null;
  readonly shape: readonly number[];
  readonly splits: readonly number[] | null;
}

/** One condition as a form has it; see `FormRow` of the answers. */
export interface FormField {
  readonly across?: Across | null;
  readonly argument?: string | null;
  readonly argument_unit?: string;
  readonly junction?: Junction;
  readonly metric: string;
  readonly operator: Operator;
  readonly statistic: StatisticKind;
  readonly unit?: string;
  readonly value: string;
  readonly window_ms?: number | null;
}

/** One condition as fields. `argument` is the percentile, or the value that a time is above or below. */
export interface FormRow {
  readonly across?: Across | null;
  readonly argument?: string | null;
  readonly argument_unit?: string;
  readonly junction?: Junction;
  readonly metric: string;
  readonly operator: Operator;
  readonly statistic: StatisticKind;
  readonly unit?: string;
  readonly value: string;
  readonly window_ms?: number | null;
}

/** GPUs that behave alike; label 0 is the largest. */
export interface GpuCluster {
  readonly explanation: ClusterExplanation | null;
  readonly label: number;
  readonly size: number;
  readonly units: readonly string[];
}

/** Communication of a process group that nothing hides: mean seconds of a rank and step. */
export interface GroupExposure {
  readonly exposed_s: number;
  readonly process_group: string;
  readonly ranks: number;
  readonly waiting_s: number;
}

/** Alive; `paused` says why nothing is stored now, `failing` which background loops fail: /api/v1/sources says why. */
export interface Health {
  readonly failing: readonly string[];
  readonly newest_sample_at: number | null;
  readonly paused: string | null;
  readonly status: string;
  readonly version: string;
}

/** Columns, by `from_at`: which holder has so many GPUs of which node from when to when. Places in the course's lists. */
export interface HeldSpans {
  readonly from_at: readonly number[];
  readonly gpus: readonly number[];
  readonly holder: readonly number[];
  readonly node: readonly number[];
  readonly to_at: readonly number[];
}

/** What a search result is. */
export type HitKind = "workload" | "user" | "project" | "node";

/** A running workload on the nodes that are planned for this one. `likely_end_at`: predicted, never after the limit. */
export interface HolderRow {
  readonly ends_by: number;
  readonly gpus: number;
  readonly likely_end_at: number | null;
  readonly name: string | null;
  readonly nodes: readonly string[];
  readonly started_at: number | null;
  readonly user: string | null;
  readonly workload: string;
}

/** An estimate and the middle 95 % of its bootstrap. */
export interface Interval {
  readonly high: number;
  readonly low: number;
  readonly value: number;
}

/** A measure of the trace as it is, and over the jittered runs: mean, standard deviation, middle 95 %. */
export interface JitteredMeasure {
  readonly high: number | null;
  readonly low: number | null;
  readonly mean: number | null;
  readonly name: string;
  readonly sd: number | null;
  readonly title: string;
  readonly unit: string;
  readonly value: number | null;
}

/** How a job ended. `unknown` is for traces that do not say, or in a word we do not know. */
export type JobStatus = "completed" | "failed" | "cancelled" | "timeout" | "unknown";

/** The own history first, then uploads, newest first. */
export interface JobTraceList {
  readonly traces: readonly JobTraceRow[];
}

/** A job trace in the list. `trace`: its id; `cluster` is this cluster's history, of which nothing is counted ahead. `notes`: what was found in its rows and done about it, with the lines of the first. `total_units`: the machine's size. */
export interface JobTraceRow {
  readonly dropped: number | null;
  readonly format: string;
  readonly is_own: boolean;
  readonly jobs: number | null;
  readonly name: string;
  readonly notes: readonly CleaningNote[];
  readonly size_bytes: number | null;
  readonly size_unit: "processors" | "gpus" | "nodes";
  readonly total_units: number | null;
  readonly trace: string;
  readonly uploaded_at: number | null;
}

/** How terms are joined. */
export type Junction = "and" | "or";

/** How often a rank came last. */
export interface LastArriver {
  readonly rank: number;
  readonly times: number;
}

/** When a workload likely starts: with probability `level` between the two ends. */
export interface LikelyStart {
  readonly from_at: number;
  readonly level: number;
  readonly likely_at: number;
  readonly to_at: number;
}

/** `counts[i]` values lie in [`edges[i]`, `edges[i + 1]`); `zeros` are below every edge of a logarithmic grid. */
export interface LogHistogram {
  readonly counts: readonly number[];
  readonly edges: readonly number[];
  readonly zeros: number;
}

/** A background loop. `error`: the class of its last error, `problem` its message; both null while it works. */
export interface LoopState {
  readonly error: string | null;
  readonly failing_since: number | null;
  readonly failures: number;
  readonly loop: string;
  readonly problem: string | null;
}

/** A new token. `secret` is told here once and never again. */
export interface MadeToken {
  readonly secret: string;
  readonly token: TokenAnswer;
}

/** A measure as it is and as it would be: means over the same futures, their paired difference and its 95 % interval. `verdict`: better, worse, unclear (the interval holds 0) or same. */
export interface MeasureChange {
  readonly baseline: number;
  readonly changed: number;
  readonly difference: number;
  readonly high: number;
  readonly low: number;
  readonly name: string;
  readonly title: string;
  readonly unit: string;
  readonly verdict: string;
}

/** A value and its 95 % interval; no interval where there is nothing to make one from. */
export interface Measured {
  readonly high?: number | null;
  readonly low?: number | null;
  readonly value: number;
}

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

/** What a model was made from and how good it is. `report` is on the last 30 % of the jobs, which its twin did not see. */
export interface ModelCard {
  readonly first_submit_at: number | null;
  readonly is_trained: boolean;
  readonly jobs: number;
  readonly last_submit_at: number | null;
  readonly limits: readonly string[];
  readonly method: string;
  readonly name: string;
  readonly report: PredictionReport | null;
  readonly retrained_after: number;
  readonly trained_at: number | null;
}

/** Every model in use. */
export interface ModelCards {
  readonly assumptions: readonly string[];
  readonly models: readonly ModelCard[];
}

/** Nobody is told of these violations until `expires_at`. */
export interface MuteAnswer {
  readonly author: string;
  readonly created_at: number;
  readonly expires_at: number;
  readonly key: string;
  readonly reason: string;
  readonly rule: string;
  readonly workload: string | null;
}

/** Whom not to tell of, why and for how long. */
export interface MuteRequest {
  readonly author: string;
  readonly hours: number;
  readonly reason: string;
  readonly rule: string;
  readonly workload?: string | null;
}

/** An exporter that cannot be tied to one node with certainty, and what to write where the proposal is right. */
export interface NameQuestion {
  readonly exporter: string;
  readonly gpus: number;
  readonly host_name: string | null;
  readonly is_counted: boolean;
  readonly problem: string;
  readonly proposed: string | null;
  readonly setting: string;
}

/** What must come free: `missing_gpus` more on `missing_nodes` nodes; 0: there is room, and others are to have it. */
export interface Needed {
  readonly gpus_per_node: number;
  readonly machine_type: string | null;
  readonly missing_gpus: number;
  readonly missing_nodes: number;
  readonly nodes: number;
  readonly ready_nodes: number;
  readonly text: string;
}

/** A local account. */
export interface NewAccount {
  readonly login: string;
  readonly password: string;
  readonly projects?: readonly string[];
  readonly role: Role;
  readonly title?: string | null;
}

/** What to write about a workload. */
export interface NewComment {
  readonly author: string;
  readonly text: string;
  readonly workload: string;
}

/** A new password of one's own. */
export interface NewPassword {
  readonly new: string;
  readonly old: string;
}

/** A token to make; without an owner it is one's own. */
export interface NewToken {
  readonly days?: number;
  readonly owner?: Owner | null;
  readonly scopes: readonly Scope[];
  readonly title: string;
}

/** A trace whose files are to be sent. */
export interface NewTrace {
  readonly name: string;
  readonly workload_id?: string | null;
}

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

/** A node, the workloads on it, and what was wrong with it in the last 30 days, what goes on first, then the latest. `turns`: when it went out of service and came back, the latest first. */
export interface NodeDetail {
  readonly faults: readonly FaultAnswer[];
  readonly node: NodeAnswer;
  readonly turns: readonly NodeTurnAnswer[];
  readonly workloads: readonly WorkloadAnswer[];
}

/** A node's state for scheduling, reduced to what a reader must tell apart. */
export type NodeState = "idle" | "mixed" | "allocated" | "draining" | "drained" | "down" | "unknown";

/** The node went out of service, came back, or its reason changed. */
export interface NodeTurnAnswer {
  readonly from_at: number;
  readonly reason: string | null;
  readonly state: NodeState;
}

/** From the first submission to the last end, or until a history that goes on was read. Units are those of the trace's sizes. `capacity_units`: what the source states, else the most that was ever busy (`is_capacity_stated`). `utilization`: unit-hours used over unit-hours there were. `time_share_by_level`: shares of the time during which 0–5 %, 5–10 %, … of the capacity was busy, the last with everything above. `over_capacity_share`: of the time with more busy than there is, which says that recorded starts or the stated size are wrong. `left_out`: jobs whose start, run time or size is not known; they are in none of this. */
export interface Occupancy {
  readonly capacity_units: number;
  readonly course: OccupancyCourse;
  readonly epoch_s: number | null;
  readonly is_capacity_stated: boolean;
  readonly left_out: number;
  readonly mean_waiting_jobs: number;
  readonly over_capacity_share: number;
  readonly peak_busy_units: number;
  readonly peak_waiting_jobs: number;
  readonly time_share_by_level: readonly number[];
  readonly used_unit_hours: number;
  readonly utilization: number;
}

/** Means over the bins that begin at `start_s + i · step_s` (seconds as in the trace; plus `epoch_s` Unix time). */
export interface OccupancyCourse {
  readonly busy_units: readonly number[];
  readonly running_jobs: readonly number[];
  readonly start_s: number;
  readonly step_s: number;
  readonly waiting_jobs: readonly number[];
  readonly waiting_units: readonly number[];
}

/** A GPU further from the others than chance explains. `kinds`: by what, most telling first. */
export interface OddUnit {
  readonly distance: number;
  readonly kinds: readonly string[];
  readonly p_value: number;
  readonly sentence: string;
  readonly unit: string;
}

/** How the statistic compares with the value. */
export type Operator = "<" | "<=" | ">" | ">=" | "=" | "!=";

/** How it ended. */
export type Outcome = "done" | "refused";

/** Whose token it is to be. */
export interface Owner {
  readonly login: string;
  readonly way: Way;
}

/** A statement of the paper, tested on traces. `effect`: in `effect_unit`, with the interval of the jobs at hand; `effect_by_user`: the same with users resampled. `sentence` says the verdict with its numbers, `rests_on` what it was computed from and how it was judged. */
export interface PaperClaim {
  readonly caveats?: readonly string[];
  readonly effect?: Measured | null;
  readonly effect_by_user?: Measured | null;
  readonly effect_name: string;
  readonly effect_unit: string;
  readonly key: string;
  readonly rests_on: string;
  readonly sentence: string;
  readonly statement: string;
  readonly takeaway: number | null;
  readonly traces: readonly string[];
  readonly verdict: ClaimVerdict;
}

/** One partition's queue in numbers; `drained_at`: when the last of those that wait for room is planned to start. `held`: held back by their owner or an operator. `blocked`: wait for something else than room: a dependency, a limit, … */
export interface PartitionQueue {
  readonly blocked: number;
  readonly drained_at: number | null;
  readonly gpus_asked: number;
  readonly gpus_free: number;
  readonly held: number;
  readonly is_up: boolean;
  readonly name: string;
  readonly waiting: number;
}

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
  readonly shared_nodes: number;
  readonly shared_with: readonly string[];
  readonly stranded: number;
  readonly units: UnitCounts;
  readonly waiting: number;
  readonly waiting_gpus: number;
}

/** Seconds of the critical path that a rank spent with one kind of thing: compute, transfer, communication, host. */
export interface PathPart {
  readonly kind: string;
  readonly length_s: number;
  readonly rank: number;
}

/** Learned from the first part by submission, tested on the last; nothing that ended after the cut was learned from. */
export interface PredictionReport {
  readonly cut_s: number;
  readonly tables: readonly PredictionTable[];
  readonly tested: number;
  readonly trained: number;
}

/** All ways on the same jobs, which had run for `elapsed_s`. `q90_under_ratio`: how many ran longer than the calibrated 90 % quantile (ideal 0.1). */
export interface PredictionTable {
  readonly elapsed_s: number;
  readonly interval_90_cover_ratio: Interval;
  readonly jobs: number;
  readonly q90_under_ratio: Interval;
  readonly rows: readonly PredictorRow[];
}

/** How good one way is. `under_ratio`: share of jobs that ran longer than predicted. */
export interface PredictorRow {
  readonly accuracy: Interval;
  readonly name: string;
  readonly under_ratio: Interval;
}

/** Points of a priority that come from one thing: age, fair share, size, partition, quality of service, … */
export interface PriorityPart {
  readonly name: string;
  readonly points: number;
  readonly title: string;
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

/** The slips sum to `last_at` (or the start) − `first_at`. */
export interface PromiseStory {
  readonly first_at: number;
  readonly first_told_at: number;
  readonly is_schedulers: boolean;
  readonly last_at: number;
  readonly slipped_s: number;
  readonly slips: readonly SlipRow[];
  readonly started_at: number | null;
}

/** Of the values that are known. */
export interface Quantiles {
  readonly maximum: number;
  readonly minimum: number;
  readonly p05: number;
  readonly p25: number;
  readonly p50: number;
  readonly p75: number;
  readonly p95: number;
  readonly p99: number;
}

/** All that wait, in queue order. `drained_at`: likely start of the last one, or planned where nothing is forecast. `awaited`: kinds of sources that have not answered since the start; while there are any, others may wait, too. Likely starts are the forecasts of `GET /scheduling/waiting`; `calibrated_on`: waits their intervals were calibrated with. */
export interface QueueAnswer {
  readonly assumptions: readonly string[];
  readonly at: number;
  readonly awaited: readonly string[];
  readonly calibrated_on: number;
  readonly drained_at: number | null;
  readonly gpus_asked: number;
  readonly is_learned: boolean;
  readonly longest_wait_s: number | null;
  readonly partitions: readonly PartitionQueue[];
  readonly reservations: readonly ReservationAnswer[];
  readonly workloads: readonly QueueRow[];
}

/** A waiting workload. `position` counts those of its partition that wait for room only; null: something else holds it. `planned_at`: at the latest by limits if nobody else comes; `scheduler_at`: the scheduler's own estimate. `slipped_s` > 0: later than first promised. */
export interface QueueRow {
  readonly ahead: number;
  readonly ahead_gpus: number;
  readonly gpus: number;
  readonly likely: LikelyStart | null;
  readonly limit_s: number;
  readonly machine_type: string | null;
  readonly name: string | null;
  readonly nodes: number;
  readonly partition: string;
  readonly planned_at: number | null;
  readonly position: number | null;
  readonly priority: number | null;
  readonly project: string | null;
  readonly promised_at: number | null;
  readonly qos: string | null;
  readonly reason: string | null;
  readonly reason_text: string | null;
  readonly scheduler_at: number | null;
  readonly slipped_s: number | null;
  readonly submitted_at: number | null;
  readonly user: string | null;
  readonly waited_s: number | null;
  readonly waits_for: WaitKind;
  readonly workload: string;
}

/** Jobs that found [`low`, `high`] waiting: what was submitted then. */
export interface QueueThird {
  readonly high: number;
  readonly jobs: number;
  readonly low: number;
  readonly mean_size_units: number;
  readonly median_requested_s: number | null;
  readonly median_run_s: number | null;
  readonly median_size_units: number;
}

/** What is changed; null and empty: as it is. A policy orders the queue in place of the scheduler's priorities. `added`: nodes by partition, like those it has most of. `limits`: the most GPUs one workload may ask for, by partition. `first`: workloads put first. `priorities`: others, by workload. */
export interface QueueWhatIf {
  readonly added?: Readonly<Record<string, number>>;
  readonly backfill?: string | null;
  readonly drained?: readonly string[];
  readonly first?: readonly string[];
  readonly futures?: number;
  readonly limits?: Readonly<Record<string, number>>;
  readonly placement?: string | null;
  readonly policy?: string | null;
  readonly priorities?: Readonly<Record<string, number>>;
}

/** Mean seconds of a step: compute + exposed + idle = step; exposed = waiting + transferring. */
export interface RankBreakdown {
  readonly communication_s: number;
  readonly compute_s: number;
  readonly exposed_s: number;
  readonly idle_s: number;
  readonly rank: number;
  readonly step_s: number;
  readonly transferring_s: number;
  readonly waiting_s: number;
}

/** What was taken off a rank's clock. */
export interface RankClock {
  readonly drift_ppm: number;
  readonly offset_s: number;
  readonly rank: number;
}

/** Seconds per step that others waited for a rank, with the 95 % interval; null with too few steps. */
export interface RankSlack {
  readonly high_s: number | null;
  readonly last_times: number;
  readonly low_s: number | null;
  readonly rank: number;
  readonly slack_s: number;
}

/** One condition on one unit, in canonical units; null: not known. */
export interface ReadingAnswer {
  readonly bound: number | null;
  readonly bound_words: string | null;
  readonly condition: string;
  readonly is_met: boolean | null;
  readonly metric: string;
  readonly samples: number;
  readonly value: number | null;
  readonly value_words: string | null;
}

/** Another span: the launch, the other end of a message, the same operator on another rank, one before or after. */
export interface RelatedSpan {
  readonly end_ns: number;
  readonly lane: string | null;
  readonly name: string;
  readonly rank: number;
  readonly span: number;
  readonly span_class: string;
  readonly start_ns: number;
}

/** Forecasts that were shown, against what happened. `told` should equal nominal; `sampled` is before calibration. `told` is of the first forecast of each workload, `later` of those made when it had waited for a while. */
export interface ReliabilityAnswer {
  readonly bins: readonly WaitBinRow[];
  readonly jobs: number;
  readonly later: readonly Coverage[];
  readonly later_jobs: number;
  readonly median_error_s: number | null;
  readonly open: number;
  readonly sampled: readonly Coverage[];
  readonly since: number | null;
  readonly told: readonly Coverage[];
}

/** Groups of a user's jobs of the same size and a run time within 10 % of the group's mean when they came. `cover[i]`: the share of all jobs that lie in the i + 1 largest groups of their users. `top_10_cover`: the last of these, users resampled. `mean_user_cover`: its mean over users, each counted once. */
export interface Repetition {
  readonly cover: readonly number[];
  readonly groups: number;
  readonly jobs: number;
  readonly mean_user_cover: number;
  readonly top_10_cover: Measured;
  readonly users: number;
}

/** Nodes set aside, now (`is_active`) or later, for jobs that name the reservation. `gpus`: of all its nodes. */
export interface ReservationAnswer {
  readonly ends_at: number;
  readonly gpus: number;
  readonly is_active: boolean;
  readonly is_maintenance: boolean;
  readonly name: string;
  readonly nodes: readonly string[];
  readonly starts_at: number;
}

/** What somebody is on this site; each may all that those before it may. */
export type Role = "viewer" | "researcher" | "lead" | "operator" | "admin";

/** A rule in all its forms. `form` is null where it does not fit one; `counts` until it was judged. */
export interface RuleAnswer {
  readonly advice: string;
  readonly blames_units: boolean;
  readonly color: string | null;
  readonly counts: RuleCounts | null;
  readonly document: Readonly<Record<string, unknown>>;
  readonly form: readonly FormRow[] | null;
  readonly is_changed: boolean;
  readonly is_enabled: boolean;
  readonly is_shipped: boolean;
  readonly key: string;
  readonly name: string;
  readonly owner: string | null;
  readonly reason: string;
  readonly severity: Severity;
  readonly subject: Subject;
  readonly text: string;
  readonly words: readonly string[];
}

/** What to change of a rule; what is not given stays as it is. A new rule needs one of its forms. */
export interface RuleChange {
  /** To the workload's user, in their words. */
  readonly advice?: string | null;
  /** Null: by severity. */
  readonly color?: string | null;
  readonly document?: Readonly<Record<string, unknown>> | null;
  readonly form?: readonly FormField[] | null;
  readonly is_enabled?: boolean | null;
  readonly name?: string | null;
  readonly owner?: string | null;
  readonly reason?: string | null;
  readonly severity?: Severity | null;
  readonly text?: string | null;
}

/** What a rule says now. `unjudged`: too young, too few samples, or a metric is missing. `workloads` counts nodes, or sources, where the rule judges these or GPUs; `units` the GPUs that are meant. */
export interface RuleCounts {
  readonly units: number;
  readonly unjudged: number;
  readonly workloads: number;
}

/** What is wrong with a rule. `column` counts from 1 in its text; `path` leads to a field of its form or document. */
export interface RuleFault {
  readonly column?: number | null;
  readonly hint: string | null;
  readonly length?: number | null;
  readonly message: string;
  readonly path?: string | null;
  readonly suggestion?: string | null;
}

/** A rule in one of its forms. The form has no scope: `text` beside it gives the clauses after the conditions. */
export interface RuleForms {
  readonly document?: Readonly<Record<string, unknown>> | null;
  readonly form?: readonly FormField[] | null;
  readonly text?: string | null;
}

/** All rules in the order of the bar; `unreadable`: stored ones this version cannot read, and why. */
export interface RuleList {
  readonly judged_at: number | null;
  readonly rules: readonly RuleAnswer[];
  readonly unreadable: Readonly<Record<string, string>>;
}

/** Keys of rules, first ones first; rules that are not named follow. */
export interface RuleOrder {
  readonly keys: readonly string[];
}

/** A rule read from one form and written in all; `fault` where it cannot be read. */
export interface RuleReading {
  readonly document: Readonly<Record<string, unknown>> | null;
  readonly fault: RuleFault | null;
  readonly form: readonly FormRow[] | null;
  readonly text: string;
  readonly words: readonly string[];
}

/** How many GPUs broke each rule: one number per step. */
export interface RuleTimeline {
  readonly gpus: Readonly<Record<string, readonly number[]>>;
  readonly start: number;
  readonly step_ms: number;
}

/** A rule and how much of the past to try it on. */
export interface RuleTrial {
  readonly document?: Readonly<Record<string, unknown>> | null;
  readonly form?: readonly FormField[] | null;
  readonly hours?: number;
  readonly text?: string | null;
}

/** Units that break a rule, and those whose holder broke it on them earlier and keeps it now. */
export interface RuleUnits {
  readonly past: readonly string[];
  readonly rule: string;
  readonly units: readonly string[];
}

/** Everything of one run but its samples. */
export interface RunAnswer {
  readonly command: readonly string[];
  readonly cwd: string | null;
  readonly dropped: number;
  readonly environment: Readonly<Record<string, unknown>>;
  readonly exceptions: readonly string[];
  readonly left_out: Readonly<Record<string, number>>;
  readonly leftovers: number;
  readonly listeners: Readonly<Record<string, RunListener>>;
  readonly listens_to: readonly string[];
  readonly marks: readonly RunMark[];
  readonly not_finite: number;
  readonly row: RunRow;
  readonly series: readonly RunMetric[];
}

/** Joules of a run's GPUs. Scope `process`: its own part of them; `device`: all they used while it ran. */
export interface RunEnergy {
  readonly joules: number;
  readonly method: string;
  readonly scope: string;
}

/** An experiment: its workloads, newest first, and their repeats. `name` is null for runs without one. */
export interface RunExperiment {
  readonly last_at: number | null;
  readonly name: string | null;
  readonly repeats: readonly RunRepeats[];
  readonly runs: number;
  readonly states: Readonly<Record<string, number>>;
  readonly workloads: readonly RunWorkload[];
}

/** How many bytes of each file are stored. */
export interface RunFiles {
  readonly offsets: Readonly<Record<string, number>>;
}

/** The last report of a listener. */
export interface RunListener {
  readonly at?: number | null;
  readonly listener?: string | null;
  readonly message?: string | null;
  readonly missed?: number | null;
  readonly state?: string | null;
  readonly ticks?: number | null;
}

/** An epoch begins, or a phase begins or ends. */
export interface RunMark {
  readonly at?: number | null;
  readonly kind?: string | null;
  readonly name?: string | null;
}

/** One series of a run: ask for its samples by metric and unit. Statistics are of its finite samples. */
export interface RunMetric {
  readonly count: number;
  readonly first: number | null;
  readonly high: number | null;
  readonly last: number | null;
  readonly low: number | null;
  readonly mean: number | null;
  readonly method: string | null;
  readonly metric: string;
  readonly place: string | null;
  readonly scope: string | null;
  readonly unit: string;
}

/** A metric that some of the runs have; `scopes` say what it can stand for. */
export interface RunMetricName {
  readonly label: string | null;
  readonly metric: string;
  readonly runs: number;
  readonly scopes: readonly string[];
  readonly unit: string | null;
}

/** Metrics, epochs and phases that the runs asked about have. */
export interface RunMetrics {
  readonly has_epochs: boolean;
  readonly has_steps: boolean;
  readonly metrics: readonly RunMetricName[];
  readonly phases: readonly string[];
}

/** What became of a piece: where the next one begins, and how many samples it brought. */
export interface RunPiece {
  readonly not_finite: number;
  readonly offset: number;
  readonly samples: number;
}

/** Workloads that did the same again, with 95 % confidence intervals over them. */
export interface RunRepeats {
  readonly fairness: Estimate | null;
  readonly joules: Estimate | null;
  readonly label: string;
  readonly makespan_s: Estimate | null;
  readonly per_second: Estimate | null;
  readonly slowdown: Estimate | null;
  readonly workloads: readonly string[];
}

/** A run in a list. `workload` is the id under which everything else of it is found. */
export interface RunRow {
  readonly cause: string | null;
  readonly collocation: string | null;
  readonly cpu_cores: number | null;
  readonly cpu_joules: number | null;
  readonly device_type: string | null;
  readonly devices: readonly string[];
  readonly ended_at: number | null;
  readonly energy: RunEnergy | null;
  readonly executed_with: string;
  readonly experiment: string | null;
  readonly gpu_util_ratio: number | null;
  readonly group: string | null;
  readonly host: string | null;
  readonly joules_per_work: number | null;
  readonly letter: string | null;
  readonly memory_peak_bytes: number | null;
  readonly name: string | null;
  readonly params: Readonly<Record<string, string>>;
  readonly power_watts: number | null;
  readonly process_memory_peak_bytes: number | null;
  readonly queued_at: number | null;
  readonly results: Readonly<Record<string, number>>;
  readonly run: string;
  readonly samples: number;
  readonly slowdown: RunSlowdown | null;
  readonly started_at: number | null;
  readonly state: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly times: RunTimes;
  readonly user: string | null;
  readonly work: RunWork | null;
  readonly workload: string;
}

/** How much longer the same work took than alone (1.3: 30 % longer), and what it took in joules against alone. */
export interface RunSlowdown {
  readonly baseline: readonly string[];
  readonly basis: string;
  readonly energy_ratio: number | null;
  readonly ratio: number;
}

/** Seconds; null where a run has not come so far. */
export interface RunTimes {
  readonly barrier_s: number | null;
  readonly flush_s: number | null;
  readonly queued_s: number | null;
  readonly running_s: number | null;
}

/** Experiments, newest first; `rows` holds the runs they name. `left_out`: older runs beyond the limit. */
export interface RunTree {
  readonly experiments: readonly RunExperiment[];
  readonly left_out: number;
  readonly rows: readonly RunRow[];
}

/** How much a run did and how fast; `basis` is the metric that says so, or `steps`. */
export interface RunWork {
  readonly amount: number | null;
  readonly basis: string;
  readonly per_second: number | null;
  readonly unit: string;
}

/** Runs that executed together, as one thing. `repeats` is the place in `repeats` of its experiment. */
export interface RunWorkload {
  readonly collocation: string | null;
  readonly device_type: string | null;
  readonly ended_at: number | null;
  readonly energy: RunEnergy | null;
  readonly experiment: string | null;
  readonly fairness: number | null;
  readonly group: string | null;
  readonly host: string | null;
  readonly id: string;
  readonly joules_per_work: number | null;
  readonly makespan_s: number | null;
  readonly per_second: number | null;
  readonly runs: readonly string[];
  readonly slowdown: number | null;
  readonly started_at: number | null;
  readonly state: string;
  readonly user: string | null;
  readonly work_unit: string | null;
}

/** A run workload with its runs. */
export interface RunWorkloadAnswer {
  readonly rows: readonly RunRow[];
  readonly workload: RunWorkload;
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

/** What an API token may be used for; never more than its owner's role allows. */
export type Scope = "read" | "runs" | "write" | "admin";

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

/** What became of a file. */
export interface SentFile {
  readonly path: string;
  readonly size: number;
}

/** Who asks, and how to sign in. `provider`: what the button "Sign in with …" says; null: there is none. */
export interface SessionAnswer {
  readonly is_open: boolean;
  readonly password_min_length: number;
  readonly provider: string | null;
  readonly takes_password: boolean;
  readonly takes_token: boolean;
  readonly who: Who | null;
}

/** How much a violation matters, least first. */
export type Severity = "info" | "warning" | "critical";

/** What one user or project adds to the violations; null: not known. */
export interface Share {
  readonly gpu_hours: number;
  readonly name: string | null;
  readonly workloads: number;
}

/** What the sign-in form sends: the server's token, or a user name and a password. */
export interface SignIn {
  readonly login?: string | null;
  readonly password?: string | null;
  readonly token?: string | null;
}

/** One policy with one backfilling. `jobs` is null where there are too many to draw; `fingerprint` names the result. `omega` is null where nothing is relaxed. */
export interface SimulatedChoice {
  readonly backfill: string;
  readonly course: SimulatedCourse;
  readonly fingerprint: string;
  readonly jobs: SimulatedJobs | null;
  readonly measures: readonly JitteredMeasure[];
  readonly omega: number | null;
  readonly policy: string;
  readonly sizes: readonly SimulatedSize[];
  readonly wait_s: ValueSpread;
}

/** Means over the bins that begin at `start_s + i · step_s`. */
export interface SimulatedCourse {
  readonly busy_units: readonly number[];
  readonly start_s: number;
  readonly step_s: number;
  readonly waiting_jobs: readonly number[];
}

/** Every job of a small trace, to be drawn as a Gantt chart; `lane`: the lowest of the units it holds. */
export interface SimulatedJobs {
  readonly end_s: readonly number[];
  readonly job: readonly string[];
  readonly lane: readonly number[];
  readonly start_s: readonly number[];
  readonly submit_s: readonly number[];
  readonly units: readonly number[];
}

/** Waits of the jobs of `low` to `high` units, beside first come, first served with the same backfilling. `is_starved`: the 99th percentile is twice and an hour longer. The references are null where that is the policy. */
export interface SimulatedSize {
  readonly high: number;
  readonly is_starved: boolean;
  readonly jobs: number;
  readonly low: number;
  readonly max_wait_s: number;
  readonly p99_wait_s: number;
  readonly reference_max_s: number | null;
  readonly reference_p99_s: number | null;
}

/** How far a simulation is and what is there of it. `progress`: 0 to 1; `problem`: why it failed; `asked`: the question. `choices` come one by one, in the order asked. `notes`: what was left out or changed to simulate the trace. */
export interface SimulationAnswer {
  readonly asked: SimulationAsk;
  readonly choices: readonly SimulatedChoice[];
  readonly epoch_s: number | null;
  readonly jitter: number;
  readonly made_at: number;
  readonly notes: readonly CleaningNote[];
  readonly problem: string | null;
  readonly processors: number;
  readonly progress: number;
  readonly semantics: string;
  readonly simulated_jobs: number;
  readonly simulation: string;
  readonly size_unit: "processors" | "gpus" | "nodes";
  readonly state: "running" | "done" | "failed" | "stopped";
  readonly trace: string;
}

/** Every policy with every backfilling on one trace. `processors`: the machine's size; null: as the trace says. `estimates`: what the scheduler takes run times for; predicted: from the user's last two runs. `omegas`: by which share relaxed ways may delay a promise, each of them tried. `whole_at`: the queue length at which adaptive relaxation is whole. `jitter`: runs with run times ±1 s, which give the intervals. */
export interface SimulationAsk {
  readonly backfills?: readonly string[];
  readonly estimates?: "request" | "actual" | "predicted";
  readonly jitter?: number;
  readonly omegas?: readonly number[];
  readonly policies?: readonly string[];
  readonly processors?: number | null;
  readonly semantics?: string;
  readonly trace: string;
  readonly whole_at?: number;
}

/** Kept results, the newest first. */
export interface SimulationList {
  readonly simulations: readonly SimulationRow[];
}

/** A result that is kept; `asked` is its question. */
export interface SimulationRow {
  readonly asked: SimulationAsk;
  readonly made_at: number;
  readonly simulation: string;
  readonly trace: string;
}

/** What can be chosen; `relaxed`: the ways of backfilling that take a factor; `placements`: of simulations on nodes. */
export interface SimulatorOptions {
  readonly backfills: readonly string[];
  readonly estimates: readonly string[];
  readonly placements: readonly string[];
  readonly policies: readonly string[];
  readonly relaxed: readonly string[];
  readonly semantics: readonly string[];
}

/** What a finding's size counts. */
export type SizeUnit = "gpu_hours" | "seconds" | "share";

/** Why a promised start moved. */
export type SlipCause = "overdue" | "limit_changed" | "nodes_changed" | "ended" | "left" | "started" | "arrived" | "reordered" | "scheduler" | "unseen" | "own_start";

/** One move of the promise, in words. */
export interface SlipRow {
  readonly at: number;
  readonly by: readonly string[];
  readonly cause: SlipCause;
  readonly change_s: number;
  readonly words: string;
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

/** The sources of one kind: how many, how many fail, and the failing ones (the first 50). `limited`: how many answer more than `limits.sources` accepts; `notes` are the first 50 of them. */
export interface SourceGroup {
  readonly failing: number;
  readonly failures: readonly SourceAnswer[];
  readonly kind: string;
  readonly last_at: number | null;
  readonly limited: number;
  readonly notes: readonly SourceAnswer[];
  readonly total: number;
}

/** Where the data comes from, how the sources are, what was dropped, what is kept. */
export interface Sources {
  readonly awaited: readonly string[];
  readonly background: readonly LoopState[];
  readonly dropped: readonly DropAnswer[];
  readonly groups: readonly SourceGroup[];
  readonly nodes_without_exporter: readonly string[];
  readonly paused: string | null;
  readonly questions: readonly NameQuestion[];
  readonly samples_total: number;
  readonly store: StoreAnswer;
}

/** Everything about one span. `median_ns`: of its name on all ranks; `peers`: the same instance on other ranks. */
export interface SpanAnswer {
  readonly after: RelatedSpan | null;
  readonly arrive_ns: number;
  readonly bandwidth_bytes_per_s: number | null;
  readonly before: RelatedSpan | null;
  readonly bytes: number | null;
  readonly collective: string | null;
  readonly critical_ns: number;
  readonly end_ns: number;
  readonly flops: number | null;
  readonly is_device: boolean;
  readonly is_outlier: boolean;
  readonly lane: string | null;
  readonly launch: RelatedSpan | null;
  readonly launched: readonly RelatedSpan[];
  readonly median_ns: number;
  readonly members: readonly CollectiveMember[];
  readonly message: RelatedSpan | null;
  readonly micro_batch: number | null;
  readonly name: string;
  readonly namespace: string | null;
  readonly peers: readonly RelatedSpan[];
  readonly phase: string | null;
  readonly process_group: string | null;
  readonly rank: number;
  readonly slack_ns: number | null;
  readonly span: number;
  readonly span_class: string;
  readonly stage: number | null;
  readonly start_ns: number;
  readonly step: number | null;
  readonly wait_ns: number | null;
}

/** When a waiting workload starts, in the middle of the futures; `change_s` with the middle 80 % of the differences. */
export interface StartChange {
  readonly baseline_at: number | null;
  readonly change_s: number | null;
  readonly changed_at: number | null;
  readonly gpus: number;
  readonly high_s: number | null;
  readonly low_s: number | null;
  readonly partition: string;
  readonly user: string | null;
  readonly workload: string;
}

/** When a job would start. `plan_at`: if all jobs used their whole limits and nobody else came. */
export interface StartForecast {
  readonly ahead: number;
  readonly free_gpus: number;
  readonly gpus: number;
  readonly hours: number;
  readonly intervals: readonly StartInterval[];
  readonly is_at_once: boolean;
  readonly likely_at: number;
  readonly machine_type: string | null;
  readonly partition: string;
  readonly plan_at: number;
  readonly wait_s: number;
}

/** The start lies between these with probability `level`. Unix ms. */
export interface StartInterval {
  readonly from_at: number;
  readonly level: number;
  readonly to_at: number;
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

/** What sums up a series. */
export type StatisticKind = "min" | "max" | "mean" | "std" | "percentile" | "above" | "below" | "longest_above" | "longest_below" | "now" | "slope" | "increase";

/** Run times of jobs that ended so. `ratio_to_completed`: median over users of (their median so) / (their median completed). Only users with 5 jobs of both kinds count (`users`); the interval resamples them. */
export interface StatusRunTime {
  readonly jobs: number;
  readonly median_run_s: number;
  readonly ratio_to_completed: Measured | null;
  readonly status: JobStatus;
  readonly users: number;
}

/** `share` of the jobs whose end is known, with Wilson's interval; `share_by_user`: the same, users resampled. */
export interface StatusShare {
  readonly jobs: number;
  readonly share: Measured;
  readonly share_by_user: Measured | null;
  readonly status: JobStatus;
  readonly unit_hours: number;
  readonly unit_hours_share: number | null;
}

/** What the metric store holds. Where it is a server: how many samples wait until it takes them again, how many it or the spool dropped since the start, and in one line why it takes none now. */
export interface StoreAnswer {
  readonly bytes_on_disk: number | null;
  readonly engine: string;
  readonly lost_samples: number;
  readonly newest_at: number | null;
  readonly oldest_at: number | null;
  readonly samples: number | null;
  readonly trouble: string | null;
  readonly waiting_samples: number;
}

/** What a rule judges. */
export type Subject = "workloads" | "gpus" | "nodes" | "sources";

/** By thirds of the queue found. `*_ratio`: median (size: mean) in the longest third over that in the shortest. */
export interface SubmissionBehavior {
  readonly run_ratio: Measured | null;
  readonly size_ratio: Measured | null;
  readonly thirds: readonly QueueThird[];
}

/** [start, end). */
export interface TimeWindow {
  readonly end: number;
  readonly start: number;
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

/** A token as lists show it. `start`: its first characters, to know it again by. */
export interface TokenAnswer {
  readonly created_at: number;
  readonly expires_at: number;
  readonly is_live: boolean;
  readonly key: string;
  readonly login: string;
  readonly revoked_at: number | null;
  readonly scopes: readonly Scope[];
  readonly start: string;
  readonly title: string;
  readonly used_at: number | null;
  readonly way: Way;
}

/** One clock for all ranks, and what error remains; null: not known. */
export interface TraceAlignment {
  readonly clocks: readonly RankClock[];
  readonly error_s: number | null;
}

/** A trace with its report. The report is null until it has been read. */
export interface TraceAnswer {
  readonly extent_ns: number;
  readonly origin_ms: number | null;
  readonly process_groups: readonly TraceGroup[];
  readonly ranks: readonly TraceRank[];
  readonly report: TraceReportAnswer | null;
  readonly row: TraceRow;
  readonly stages: readonly TraceStage[];
}

/** A pipeline's bubble: measured = ideal + imbalance + jitter. */
export interface TraceBubble {
  readonly balanced_s: number;
  readonly ideal_ratio: number;
  readonly imbalance_ratio: number;
  readonly jitter_ratio: number;
  readonly measured_ratio: number;
  readonly micro_batches: number;
  readonly model_chunks: number;
  readonly pipeline_s: number;
  readonly resimulated_s: number;
  readonly stage_bubble_ratio: readonly number[];
  readonly stage_compute_s: readonly number[];
  readonly stages: number;
}

/** What one thing took per step in both runs; `low_s`/`high_s`: the 95 % interval of the difference (bootstrap over steps), null with too few steps. `is_significant`: the interval leaves out 0 and the difference is worth naming. */
export interface TraceChange {
  readonly after_s: number | null;
  readonly before_s: number | null;
  readonly difference_s: number;
  readonly high_s: number | null;
  readonly is_significant: boolean;
  readonly kind: "step" | "breakdown" | "phase" | "operator" | "rank";
  readonly low_s: number | null;
  readonly name: string;
  readonly rank: number | null;
  readonly sentence: string;
}

/** How many collectives and messages were matched across ranks, and who came last. */
export interface TraceCollectives {
  readonly last_arrivers: readonly LastArriver[];
  readonly matched: number;
  readonly messages: number;
  readonly unmatched_spans: number;
}

/** One trace. Times in seconds; sizes and unit-hours in `size_unit`. `epoch_s` added to a time of the trace gives Unix time; null where the trace does not say when it began. `kind`: deep learning where jobs are measured in GPUs. `total_units`: the machine's size, where it is stated. What the trace cannot answer is null: no ends, no waits, no users. */
export interface TraceDescription {
  readonly arrivals: Arrivals;
  readonly dropped: number;
  readonly elapsed: ElapsedTest | null;
  readonly epoch_s: number | null;
  readonly failures: Failures | null;
  readonly first_submit_s: number;
  readonly format: string;
  readonly jobs: number;
  readonly kind: "deep_learning" | "hpc";
  readonly last_submit_s: number;
  readonly name: string;
  readonly notes: readonly CleaningNote[];
  readonly occupancy: Occupancy | null;
  readonly requested_s: ValueSpread;
  readonly run_s: ValueSpread;
  readonly size_unit: "processors" | "gpus" | "nodes";
  readonly size_units: ValueSpread;
  readonly total_units: number | null;
  readonly unit_hours: number;
  readonly users: UserBehavior;
  readonly waiting: Waiting | null;
}

/** Two runs of the same thing: changes, largest first, and in words what matters. */
export interface TraceDiffAnswer {
  readonly after: TraceRow;
  readonly before: TraceRow;
  readonly changes: readonly TraceChange[];
  readonly notes: readonly string[];
  readonly sentences: readonly string[];
}

/** Ranks that communicate; `kind`: dp, tp, pp, ep, cp where it is known. */
export interface TraceGroup {
  readonly kind: string | null;
  readonly name: string;
  readonly ranks: readonly number[];
}

/** max/mean − 1 of compute over ranks, stages and micro-batches. */
export interface TraceImbalance {
  readonly micro_batches_ratio: number | null;
  readonly ranks_ratio: number | null;
  readonly stages_ratio: number | null;
}

/** Traces, newest first. */
export interface TraceList {
  readonly traces: readonly TraceRow[];
}

/** The critical path of the step of median length. */
export interface TracePath {
  readonly length_s: number;
  readonly parts: readonly PathPart[];
  readonly segments: number;
  readonly step: number;
}

/** One rank. `unit`: the GPU it ran on, where the trace belongs to a workload that held one for it. */
export interface TraceRank {
  readonly backend: string | null;
  readonly device: string | null;
  readonly is_complete: boolean;
  readonly rank: number;
  readonly source: string;
  readonly stage: number | null;
  readonly unit: string | null;
}

/** All measures and verdicts. `flops_source`: by the profiler, or from shapes of matrix products and convolutions; null: there are none. */
export interface TraceReportAnswer {
  readonly alignment: TraceAlignment;
  readonly breakdown: readonly RankBreakdown[];
  readonly bubble: TraceBubble | null;
  readonly collectives: TraceCollectives;
  readonly critical_path: TracePath | null;
  readonly exposed_communication: readonly GroupExposure[];
  readonly flops_source?: "recorded" | "estimated" | null;
  readonly imbalance: TraceImbalance;
  readonly slack: readonly RankSlack[];
  readonly steps: readonly TraceStep[];
  readonly verdicts: readonly Verdict[];
  readonly what_if: readonly WhatIf[];
}

/** A trace in a list. `progress`: 0–1 while it is being read; `headline`: the first verdict, null where none is. */
export interface TraceRow {
  readonly format: string | null;
  readonly headline: string | null;
  readonly imported_at: number;
  readonly name: string;
  readonly notes: readonly string[];
  readonly problem: string | null;
  readonly progress: number | null;
  readonly ranks: number;
  readonly spans: number;
  readonly state: TraceState;
  readonly steps: number;
  readonly trace_id: string;
  readonly workload_id: string | null;
}

/** A pipeline stage; `stage` is null for all ranks of a run without stages. */
export interface TraceStage {
  readonly ranks: readonly number[];
  readonly stage: number | null;
}

/** How far an imported trace is. `importing` also while its files are being sent. */
export type TraceState = "importing" | "ready" | "failed";

/** A step: mean length over its ranks, and where it begins and ends in the trace. */
export interface TraceStep {
  readonly end_ns: number;
  readonly length_s: number;
  readonly ranks: number;
  readonly start_ns: number;
  readonly step: number;
}

/** One to four traces side by side, and what the paper's claims come to on them. Intervals are of `level`. */
export interface TracesDescription {
  readonly claims: readonly PaperClaim[];
  readonly level: number;
  readonly seed: number;
  readonly timezone: string;
  readonly traces: readonly TraceDescription[];
}

/** What a rule would have done. `times` counts violations of workloads; the list has the largest ones. */
export interface TrialAnswer {
  readonly end: number;
  readonly gpu_hours: number;
  readonly judged: number;
  readonly lives: number;
  readonly start: number;
  readonly step_ms: number;
  readonly text: string;
  readonly times: number;
  readonly violations: readonly ViolationAnswer[];
  readonly workloads: number;
}

/** Units by state; `total` leaves requested ones out. Held or not, `silent` are those of silent exporters and `faulty` those that break a rule on GPUs. */
export interface UnitCounts {
  readonly allocated: number;
  readonly faulty: number;
  readonly free: number;
  readonly silent: number;
  readonly stale: number;
  readonly total: number;
  readonly unavailable: number;
}

/** A rule that a GPU breaks now or broke in the window. */
export interface UnitRule {
  readonly rule: string;
  readonly state: "now" | "past";
}

/** What a rule says of a workload on a unit, and why. `state`: met, not met, not judged, out of scope. */
export interface UnitVerdict {
  readonly readings: readonly ReadingAnswer[];
  readonly rule: string;
  readonly state: string;
  readonly unit: string;
  readonly why: string;
}

/** Which units break which rules at one moment, in the order of the rules. */
export interface UnitViolations {
  readonly at: number;
  readonly rules: readonly RuleUnits[];
}

/** `repetition` is null where users are not known; `submission` where no wait is. `largest_user_share`: jobs of the user who has most; a share near 1 may be a stand-in for "not known". */
export interface UserBehavior {
  readonly largest_user_share: number | null;
  readonly repetition: Repetition | null;
  readonly run_time_by_status: readonly StatusRunTime[];
  readonly submission: SubmissionBehavior | null;
  readonly users: number | null;
}

/** One user's jobs that ended in a known way. */
export interface UserEnds {
  readonly jobs: number;
  readonly lost_unit_hours: number;
  readonly unsuccessful: Measured;
  readonly user: string;
}

/** Values in the unit that the field's name says. `missing`: jobs without one. Without any value the rest is null. */
export interface ValueSpread {
  readonly count: number;
  readonly distribution: DistributionFunction | null;
  readonly histogram: LogHistogram | null;
  readonly mean: number | null;
  readonly missing: number;
  readonly quantiles: Quantiles | null;
}

/** One root cause. `seconds_per_step`: what fixing it gives back at most; `evidence`: numbers, seconds unless named. */
export interface Verdict {
  readonly evidence: Readonly<Record<string, number | string>>;
  readonly is_hidden: boolean;
  readonly kind: string;
  readonly rank: number | null;
  readonly seconds_per_step: number;
  readonly sentence: string;
  readonly spans: readonly VerdictSpan[];
  readonly stage: number | null;
}

/** A span to look at for a verdict. */
export interface VerdictSpan {
  readonly end_ns: number;
  readonly name: string;
  readonly rank: number;
  readonly span: number;
  readonly start_ns: number;
  readonly step: number | null;
}

/** A view as the page describes it: any JSON object of at most 64 KiB with these two fields. */
export interface ViewDocument {
  readonly title: string;
  /** Of the document's format. */
  readonly version: number;
  readonly [key: string]: unknown;
}

/** Violations of one rule by one workload, taken together: `until` is null while any of them goes on. */
export interface ViolationAnswer {
  readonly gpu_hours: number;
  readonly gpus: number;
  readonly mute: MuteAnswer | null;
  readonly node: string | null;
  readonly partition: string | null;
  readonly project: string | null;
  readonly readings: string;
  readonly rule: string;
  readonly rule_name: string;
  readonly severity: Severity;
  readonly since: number;
  readonly units: readonly string[];
  readonly until: number | null;
  readonly user: string | null;
  readonly values: Readonly<Record<string, number>>;
  readonly workload: string;
  readonly workload_name: string | null;
}

/** Violations of a time, most GPU-hours first. A GPU that broke two rules at once counts once in the sums. */
export interface ViolationList {
  readonly end: number;
  readonly gpu_hours: number;
  readonly projects: readonly Share[];
  readonly start: number;
  readonly users: readonly Share[];
  readonly violations: readonly ViolationAnswer[];
}

/** One violation as it was; `unit` null: the whole workload is blamed. */
export interface ViolationSpan {
  readonly rule: string;
  readonly since: number;
  readonly unit: string | null;
  readonly until: number | null;
}

/** A job that is not submitted: when it would start, and what would start sooner. `is_learned`: run times come from this cluster's history; else any share of a limit counts as likely as another. `calibrated_on`: waits that the intervals were calibrated with; 0: not yet. */
export interface WaitAnswer {
  readonly alternatives: readonly Alternative[];
  readonly assumptions: readonly string[];
  readonly at: number;
  readonly calibrated_on: number;
  readonly is_learned: boolean;
  readonly start: StartForecast;
}

/** Forecasts of jobs of like size and like queue. `size` and `queue` say the bin in words. */
export interface WaitBinRow {
  readonly jobs: number;
  readonly median_error_s: number;
  readonly queue: string;
  readonly size: string;
}

/** What a waiting workload waits for. Only what somebody holds back is held. */
export type WaitKind = "room" | "held" | "dependency" | "limit" | "begin_time" | "reservation" | "other";

/** Recorded waits. `mean_bounded_slowdown`: max(1, (wait + run) / max(run, 10 s)) over the jobs that ran. */
export interface Waiting {
  readonly by_size: readonly ClassWaits[];
  readonly by_waiting_jobs: readonly ClassWaits[];
  readonly mean_bounded_slowdown: number | null;
  readonly wait_s: ValueSpread;
}

/** A waiting workload. `scheduler_at`: when the scheduler itself expects to start it. */
export interface WaitingForecast {
  readonly scheduler_at: number | null;
  readonly start: StartForecast;
  readonly user: string | null;
  readonly workload: string;
}

/** All waiting workloads, queue by queue; `left_out`: how many wait for something else, or for more than there is. */
export interface WaitingForecasts {
  readonly assumptions: readonly string[];
  readonly at: number;
  readonly calibrated_on: number;
  readonly is_learned: boolean;
  readonly left_out: number;
  readonly workloads: readonly WaitingForecast[];
}

/** Why one workload waits, or (`row` is null) waited. `changes`: what would start it sooner, the cheapest first. `parts`: what its priority is made of, the most points first; empty where the scheduler does not tell. */
export interface WaitingStory {
  readonly ahead: readonly AheadRow[];
  readonly assumptions: readonly string[];
  readonly at: number;
  readonly changes: readonly CheaperChange[];
  readonly holders: readonly HolderRow[];
  readonly needed: Needed | null;
  readonly parts: readonly PriorityPart[];
  readonly planned_nodes: readonly string[];
  readonly promise: PromiseStory | null;
  readonly row: QueueRow | null;
  readonly text: readonly string[];
  readonly workload: string;
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

/** How somebody came in. A login is one person's within one way only. */
export type Way = "static" | "local" | "oidc" | "proxy";

/** A question with the step it would give. `error_s`: how far the simulation of the unchanged step is from the measured one; `speed_up_low`/`speed_up_high`: the 95 % interval over steps, null with too few. */
export interface WhatIf {
  readonly error_s: number;
  readonly now_s: number;
  readonly question: string;
  readonly speed_up: number | null;
  readonly speed_up_high: number | null;
  readonly speed_up_low: number | null;
  readonly then_s: number;
}

/** What would be otherwise. */
export interface WhatIfAnswer {
  readonly assumptions: readonly string[];
  readonly at: number;
  readonly backfills: readonly string[];
  readonly changes: readonly string[];
  readonly course: WhatIfCourse;
  readonly futures: number;
  readonly is_unchanged: boolean;
  readonly measures: readonly MeasureChange[];
  readonly placements: readonly string[];
  readonly policies: readonly string[];
  readonly simulated: number;
  readonly warnings: readonly WhatIfWarning[];
  readonly workloads: readonly StartChange[];
}

/** What is changed: a `straggler` (`rank`) as fast as its peers, stages in `balance`, every `link` (or those of one `process_group`) or `compute` (of a `rank`, a `stage` or all) `factor` times as fast, perfect `overlap`, or another `schedule` (`micro_batches`, `schedule`) of a pipeline. */
export interface WhatIfChange {
  readonly factor?: number;
  readonly kind: "straggler" | "balance" | "link" | "overlap" | "compute" | "schedule";
  readonly micro_batches?: number | null;
  readonly process_group?: string | null;
  readonly rank?: number | null;
  readonly schedule?: "gpipe" | "1f1b" | null;
  readonly stage?: number | null;
}

/** Who holds what from now until the queue of now has started, in the future in which every run takes its middle time and nobody else comes. `left_out`: nodes beyond those that are told. */
export interface WhatIfCourse {
  readonly baseline: HeldSpans;
  readonly changed: HeldSpans;
  readonly from_at: number;
  readonly holders: readonly WhatIfHolder[];
  readonly left_out: number;
  readonly nodes: readonly WhatIfNode[];
  readonly until_at: number;
}

/** A workload of now. `is_waiting`: it is in the queue, and not running yet. */
export interface WhatIfHolder {
  readonly gpus: number | null;
  readonly is_waiting: boolean;
  readonly user: string | null;
  readonly workload: string;
}

/** A node with GPUs. `is_open` as it is, `will_be_open` with the change; an added one is there only then. */
export interface WhatIfNode {
  readonly gpus: number;
  readonly is_added: boolean;
  readonly is_open: boolean;
  readonly node: string;
  readonly partition: string;
  readonly will_be_open: boolean;
}

/** How far a what-if is. `progress`: 0 to 1; `problem`: why it failed; `answer`: once it is done. */
export interface WhatIfProgress {
  readonly answer: WhatIfAnswer | null;
  readonly problem: string | null;
  readonly progress: number;
  readonly run: string;
  readonly state: "running" | "done" | "failed" | "stopped";
}

/** One question. */
export interface WhatIfQuestion {
  readonly change: WhatIfChange;
}

/** A side effect. `kind`: starvation, fragmentation, never or refused. */
export interface WhatIfWarning {
  readonly kind: string;
  readonly text: string;
  readonly title: string;
  readonly workloads: readonly string[];
}

/** Who is signed in. `way`: static, local, oidc, proxy; null where nobody has to sign in. */
export interface Who {
  readonly login: string | null;
  readonly projects: readonly string[];
  readonly role: Role;
  readonly title: string | null;
  readonly way: Way | null;
}

/** A workload with what follows from its times. */
export interface WorkloadAnswer {
  readonly derived_exit_code: number | null;
  readonly derived_exit_signal: number | null;
  readonly earlier_gpu_hours: number;
  readonly eligible_at: number | null;
  readonly ended_at: number | null;
  readonly exit_code: number | null;
  readonly exit_signal: number | null;
  readonly expected_start_at: number | null;
  readonly experiment: string | null;
  readonly gpu_hours: number | null;
  readonly gpus_allocated: number | null;
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
  readonly suspended_s: number;
  readonly tags: Readonly<Record<string, string>>;
  readonly time_limit_s: number | null;
  readonly user: string | null;
  readonly wait_s: number | null;
  readonly waits_for: WaitKind | null;
  readonly workload: string;
}

/** A workload, its earlier executions by start, and the units it held. */
export interface WorkloadDetail {
  readonly allocations: readonly AllocationAnswer[];
  readonly executions: readonly ExecutionAnswer[];
  readonly workload: WorkloadAnswer;
}

/** Something on the time axis; `until` null: a moment, or it goes on. `unit` null: it concerns all. */
export interface WorkloadEvent {
  readonly at: number;
  readonly kind: EventKind;
  readonly text: string;
  readonly unit: string | null;
  readonly until: number | null;
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

/** Every rule on every unit of a workload that runs, and its violations, past ones included. `verdicts`: of a workload with many units only of some, those that break rules first; `units`: of how many there are. */
export interface WorkloadVerdicts {
  readonly judged_at: number | null;
  readonly spans: readonly ViolationSpan[];
  readonly units: number;
  readonly verdicts: readonly UnitVerdict[];
  readonly violations: readonly ViolationAnswer[];
  readonly workload: string;
}
