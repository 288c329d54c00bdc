// Generated from openapi.json by `npm run codegen`; do not edit.
// The shapes of the server's answers. Times are Unix ms, ratios 0–1, missing is null.

/** A statistic of the whole workload, from those of its units. */
export type Across = "spread" | "least" | "most" | "average";

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

/** Which units to write. */
export interface ChosenUnits {
  readonly units: readonly string[];
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

/** Rows that shared one fate: not stored, or (`is_stored`) stored though odd; `meaning` is the reason in words. */
export interface DropAnswer {
  readonly count: number;
  readonly is_stored: boolean;
  readonly kind: string;
  readonly meaning: string | null;
  readonly reason: string;
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

/** Alive; `paused` says why nothing is stored now. */
export interface Health {
  readonly newest_sample_at: number | null;
  readonly paused: string | null;
  readonly status: string;
  readonly version: string;
}

/** What a search result is. */
export type HitKind = "workload" | "user" | "project" | "node";

/** How terms are joined. */
export type Junction = "and" | "or";

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

/** What to write about a workload. */
export interface NewComment {
  readonly author: string;
  readonly text: string;
  readonly workload: string;
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

/** A node, and the workloads on it now. */
export interface NodeDetail {
  readonly node: NodeAnswer;
  readonly workloads: readonly WorkloadAnswer[];
}

/** A node's state for scheduling, reduced to what a reader must tell apart. */
export type NodeState = "idle" | "mixed" | "allocated" | "draining" | "drained" | "down" | "unknown";

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

/** A rule in all its forms. `form` is null where it does not fit one; `counts` until it was judged. */
export interface RuleAnswer {
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
  readonly text: string;
  readonly words: readonly string[];
}

/** What to change of a rule; what is not given stays as it is. A new rule needs one of its forms. */
export interface RuleChange {
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

/** What a rule says now. `unjudged`: too young, too few samples, or a metric is missing. */
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
  readonly leftovers: number;
  readonly listeners: Readonly<Record<string, unknown>>;
  readonly marks: readonly (Readonly<Record<string, unknown>>)[];
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

/** How much a violation matters, least first. */
export type Severity = "info" | "warning" | "critical";

/** What one user or project adds to the violations; null: not known. */
export interface Share {
  readonly gpu_hours: number;
  readonly name: string | null;
  readonly workloads: number;
}

/** What the sign-in form sends. */
export interface SignIn {
  readonly token: string;
}

/** What a finding's size counts. */
export type SizeUnit = "gpu_hours" | "seconds" | "share";

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

/** What sums up a series. */
export type StatisticKind = "min" | "max" | "mean" | "std" | "percentile" | "above" | "below" | "longest_above" | "longest_below" | "now" | "slope" | "increase";

/** What the metric store holds. */
export interface StoreAnswer {
  readonly bytes_on_disk: number | null;
  readonly engine: string;
  readonly newest_at: number | null;
  readonly oldest_at: number | null;
  readonly samples: number | null;
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

/** Units by state; `total` leaves requested ones out. */
export interface UnitCounts {
  readonly allocated: number;
  readonly free: number;
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
