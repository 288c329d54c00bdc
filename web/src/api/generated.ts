// Generated from openapi.json by `npm run codegen`; do not edit.
// The shapes of the server's answers. Times are Unix ms, ratios 0–1, missing is null.

/** An account. Role and projects of OIDC and proxy accounts are those of the last sign-in. */
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

/** Changes of an account; omitted fields stay. Only `is_disabled` can be changed unless the account is local. */
export interface AccountChange {
  readonly is_disabled?: boolean | null;
  readonly password?: string | null;
  readonly projects?: readonly string[] | null;
  readonly role?: Role | null;
  readonly title?: string | null;
}

/** How the statistics of a workload's units are combined into one. */
export type Across = "spread" | "least" | "most" | "average";

/** What a piece of advice is about. */
export type AdviceKind = "memory" | "cores" | "time_limit" | "gpus" | "gpu_model" | "mig";

/** A workload that is ahead, and why. `parts`: the factors of its priority, if the scheduler reports them. */
export interface AheadRow {
  readonly gpus: number;
  readonly parts: readonly PriorityPart[];
  readonly planned_at: number | null;
  readonly priority: number | null;
  readonly user: string | null;
  readonly why: string;
  readonly workload: string;
}

/** All channels. `unposted`: turns in memory that could not be written to the database. */
export interface AlertState {
  readonly channels: readonly ChannelAnswer[];
  readonly unposted: number;
}

/** A workload held a unit for a time; `source` and `confidence` say how we know. */
export interface AllocationAnswer {
  readonly confidence: number;
  readonly from_at: number;
  readonly source: AllocationSource;
  readonly to_at: number | null;
  readonly unit: string;
  readonly workload: string;
}

/** The evidence for an allocation, most reliable first. */
export type AllocationSource = "scheduler_index" | "pod_resources" | "exporter_label" | "process" | "whole_node";

/** An alternative request. `change`: fewer_gpus, shorter or partition. */
export interface Alternative {
  readonly change: string;
  readonly start: StartForecast;
}

/** Submissions. Hours and weekdays are in `timezone`; null if the trace does not state its start. `jobs_by_weekday_hour`: 7 × 24, Monday first. `jobs_per_hour_by_*`: mean over the hours of that kind; the intervals come from the observed variation between such hours (and days), since submissions are not Poisson. `burstiness`: standard deviation / mean of the gaps; 1 for independent submissions. */
export interface Arrivals {
  readonly burstiness: number | null;
  readonly busiest_to_quietest_hour: number | null;
  readonly gap_s: ValueSpread;
  readonly jobs_by_weekday_hour: readonly (readonly number[])[] | null;
  readonly jobs_per_hour_by_hour: readonly (Measured | null)[] | null;
  readonly jobs_per_hour_by_weekday: readonly (Measured | null)[] | null;
  readonly timezone: string;
}

/** Entries, newest first. `next`: pass it as `before` to get older entries; null: there are none. */
export interface AuditPage {
  readonly entries: readonly AuditRow[];
  readonly next: string | null;
}

/** An action that a user did or tried. `way`: static, local, oidc, proxy, token:KEY, here or command. */
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

/** A budget, what was used of it, and when it runs out at the pace of the last eight weeks. Used and granted are GPU-hours, or money where `currency` is set. `runs_out_at`: the median of the forecast, `runs_out_low` and `runs_out_high`: its middle 90 %; null: not within three years, or too little history. `used_by_end`: forecast for the end of the budget. */
export interface BudgetAnswer {
  readonly currency: string | null;
  readonly end: number;
  readonly granted: number;
  readonly has_forecast: boolean;
  readonly name: string;
  readonly project: string | null;
  readonly runs_out_at: number | null;
  readonly runs_out_high: number | null;
  readonly runs_out_low: number | null;
  readonly start: number;
  readonly time_ratio: number;
  readonly used: number;
  readonly used_by_end: number | null;
  readonly used_ratio: number;
  readonly user: string | null;
}

/** The lengths of time that usage is summed over. */
export type CalendarStep = "day" | "week" | "month" | "quarter" | "year";

/** Where a cause acts, as columns of equal length: rank, step, seconds, and the longest time of it in this step (nanoseconds since the trace's first start). */
export interface CauseOccurrences {
  readonly end_ns?: readonly number[];
  readonly ranks?: readonly number[];
  readonly seconds?: readonly number[];
  readonly start_ns?: readonly number[];
  readonly steps?: readonly number[];
}

/** How sure a verdict is: of a recorded fact, of its most frequent cause, or only of what was left. */
export type Certainty = "certain" | "likely" | "possible";

/** The state of an alert channel. Counts are of messages, or where named so of turns (starts and ends of violations). */
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

/** A changed request, its start, and how much sooner that is than the same start of the unchanged request. Likely or latest start: see `baseline` of the story. `cost`: the share of the request that is given up. */
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

/** A choice of mails. */
export interface ChosenMail {
  readonly choice: MailKind;
}

/** The units to export. */
export interface ChosenUnits {
  readonly units: readonly string[];
}

/** The verdict on a claim. */
export type ClaimVerdict = "supported" | "not_supported" | "cannot_tell";

/** Jobs whose size or run time is in [`low`, `high`]: the share of unsuccessful and of failed jobs. */
export interface ClassEnds {
  readonly failed: Measured;
  readonly high: number;
  readonly jobs: number;
  readonly low: number;
  readonly unsuccessful: Measured;
}

/** Waits, in seconds, of the jobs whose size (or number of waiting jobs at submission) is in [`low`, `high`]. */
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

/** A problem in the rows of a trace and how it was handled. `lines` are examples, not all. */
export interface CleaningNote {
  readonly action: "dropped" | "repaired" | "kept";
  readonly count: number;
  readonly lines?: readonly number[];
  readonly reason: string;
}

/** An attribute that distinguishes the GPUs of a cluster from the others. `gain`: adjusted mutual information, 0–1. */
export interface ClusterExplanation {
  readonly attribute: string;
  readonly gain: number;
  readonly p_value: number;
  readonly precision: number;
  readonly recall: number;
  readonly sentence: string;
  readonly values: readonly string[];
}

/** The cluster in numbers, now or (`is_past`) at a past minute, for which the states of sources are unknown. `nodes_unavailable` is null for times before node states were recorded. */
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

/** A rank in a collective: when it arrived, how long it waited for the last rank, how long the transfer took. */
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

/** A user's comment on a workload's violations. */
export interface CommentAnswer {
  readonly author: string;
  readonly created_at: number;
  readonly key: string;
  readonly text: string;
  readonly workload: string;
}

export type Completion = readonly [string, number, string];

/** A text that is being typed, and the position of the cursor. */
export interface CompletionQuestion {
  readonly cursor?: number | null;
  readonly text: string;
}

/** Share of waits within intervals of a nominal level; `low`/`high`: Wilson's 95 % interval of that share. */
export interface Coverage {
  readonly covered: number;
  readonly high: number;
  readonly jobs: number;
  readonly low: number;
  readonly nominal: number;
}

/** Forecasts of one quarter of the tested jobs, in time order: share within the 90 % interval, and its median width. */
export interface CoverageQuarter {
  readonly covered: number;
  readonly jobs: number;
  readonly width_s: number;
}

/** A metric that GPUs can be compared by; `has_samples`: the workload's GPUs have it. */
export interface DiagnosedMetric {
  readonly has_samples: boolean;
  readonly label: string;
  readonly name: string;
  readonly unit: MetricUnit;
}

/** One GPU of the workload. `cluster` null: it cannot be compared; `odd_rank` 1 is the GPU furthest from the others. `rules` are in display order. `held_to` null: it is still held. */
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

/** The diagnosis of one workload over a window of its life. `linkage` is SciPy's (n − 1) × 4 over the units of clusters in the order of `compared`; `leaves` is the order of the dendrogram; `heights_for_counts[k − 1]` cuts it into k clusters. `gpu_hours`, wasted hours and energy are of the window. */
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

/** Rows that were dropped, or (`is_stored`) stored although odd, for one reason; `meaning` explains the reason. */
export interface DropAnswer {
  readonly count: number;
  readonly is_stored: boolean;
  readonly kind: string;
  readonly meaning: string | null;
  readonly reason: string;
}

/** Tested on the last 30 % of jobs by submission that ran longer than `elapsed_s`, a quarter of the mean run time of earlier jobs. Each is predicted by the median of earlier jobs of its user and size (else of its user, else of all; at least five): of all of them, at least the elapsed time (`unaware`), or only of those that ran longer than it (`aware`). Accuracy: min / max of prediction and run time, mean over jobs. `gain`: aware minus unaware; with the interval for these jobs, and with users resampled. */
export interface ElapsedTest {
  readonly aware_accuracy: number;
  readonly elapsed_s: number;
  readonly gain: Measured;
  readonly gain_by_user: Measured | null;
  readonly jobs: number;
  readonly request_accuracy: number | null;
  readonly unaware_accuracy: number;
}

/** Whether jobs of the upper class end unsuccessfully more often than those of the lowest. `rise`: highest class minus lowest, with Newcombe's interval for these jobs. `rise_by_user`: with users resampled; null if users are unknown. `trend_z`: Cochran–Armitage statistic; above 1.96 the share rises with the class. `rank_correlation`: Spearman's correlation of the value with being unsuccessful. `falls_at`: the first class whose share is significantly below that of the previous class. */
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

/** How the energy was determined. */
export type EnergySource = "counter" | "power";

/** A mean over `count` repeats. `low` and `high` bound the true mean at 95 % (Student's t); null for one repeat. */
export interface Estimate {
  readonly count: number;
  readonly high: number | null;
  readonly low: number | null;
  readonly mean: number;
}

/** The kind of an event of a workload. */
export type EventKind = "start" | "end" | "violation" | "xid" | "cotenant_in" | "cotenant_out" | "annotation";

/** An earlier execution of a workload that was requeued, preempted or resized. */
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

/** `lost_unit_hours`: used by unsuccessful jobs. `user_share_p*`: quantiles over users with at least 10 jobs. `worst_tenth_share`: share of all unsuccessful jobs that belongs to the 10% of users with the most of them. */
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

/** A rule that the node itself, or one of its GPUs (`unit`), violated; `until` is null while it lasts. */
export interface FaultAnswer {
  readonly readings: string;
  readonly rule: string;
  readonly rule_name: string;
  readonly severity: Severity;
  readonly since: number;
  readonly unit: string | null;
  readonly until: number | null;
}

/** A conclusion as text, with its size and its evidence. */
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

/** The type of a finding. */
export type FindingKind = "imbalance" | "slow_node" | "periodic_dips" | "stall" | "memory_growth" | "throttling" | "communication_bound" | "idle_tail" | "odd_gpu" | "straggler";

/** An estimate with its 95 % interval; null if it is unbounded or unknown. */
export interface FindingNumber {
  readonly high: number | null;
  readonly low: number | null;
  readonly unit: string;
  readonly value: number | null;
}

/** What of a flow runs in a window: `running`: how many operators of each node do, on any rank. `at`: the node of the requested span, or null. `is_by_module`: known only by module, since the graph and the timeline number their operators differently. */
export interface FlowActivity {
  readonly at: number | null;
  readonly is_by_module: boolean;
  readonly running: readonly number[];
}

/** The execution flow; nodes in the order of execution. `is_recorded`: from an operator graph, else from spans of one rank per stage in the typical step; `is_captured`: with the modules of the run. `opened`: open namespaces, in the form of the request. `at`: the node of the requested span, or null. */
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

/** Operators of one stage between two messages; `after`: blocks that it waits for, all with smaller indices. */
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

/** The parallel strategy that an operator belongs to. */
export type FlowMark = "pp" | "tp" | "dp" | "ep" | "redistribution" | "gradient_aggregation" | "communication";

/** How many operators of a node belong to a part of the parallel strategy. */
export interface FlowMarks {
  readonly count: number;
  readonly mark: FlowMark;
}

/** The module of a node, or the module around it, if the run was captured; `path` as in the model, empty for the model. */
export interface FlowModule {
  readonly class_name: string;
  readonly inputs: readonly FlowTensor[];
  readonly outputs: readonly FlowTensor[];
  readonly parameters: readonly FlowTensor[];
  readonly path: string;
}

/** An open namespace. */
export interface FlowNamespace {
  readonly namespace: number;
  readonly operators: number;
  readonly path: string;
}

/** An operator, a closed namespace, or operators that only order others; `count` of them stacked. `opens`: the value to add to `open` to expand it. `matches`: operators with the searched text. `span`: the longest; times are null if the trace has no spans of it. */
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

/** A parameter, input or output of a module: its shape over all ranks, into how many parts each dimension is split (null: unknown), and over which mesh. */
export interface FlowTensor {
  readonly name: string;
  readonly placement: string | null;
  readonly shape: readonly number[];
  readonly splits: readonly number[] | null;
}

/** `predicted_by`: the chosen estimate. `alone_at`: likely start if no other job came; with run times as requested, too, it is `plan_at` of the forecast. `run_times_ratio`: width of the 90 % interval from run times alone ÷ that of the forecast, at most 1; null if it is certain. `says_little`: the interval is too wide to be of use: more than a day, and more than twice the likely wait. */
export interface ForecastWhy {
  readonly alone_at: number;
  readonly predicted_by: string;
  readonly run_times_ratio: number | null;
  readonly says_little: boolean;
  readonly text: string;
  readonly uncertain: WaitUncertainty;
}

/** One condition as a form sends it; see `FormRow` of the answers. */
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

/** One condition as form fields. `argument`: the percentile, or the threshold of a time above or below. */
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

/** The sums of a period of the same kind, for comparison. */
export interface FormerPeriod {
  readonly figures: UsageFigures;
  readonly name: string;
  readonly start: number;
}

/** GPUs with similar behavior; label 0 is the largest cluster. */
export interface GpuCluster {
  readonly explanation: ClusterExplanation | null;
  readonly label: number;
  readonly size: number;
  readonly units: readonly string[];
}

/** Exposed communication of a process group (not overlapped by compute): mean seconds per rank and step. */
export interface GroupExposure {
  readonly exposed_s: number;
  readonly process_group: string;
  readonly ranks: number;
  readonly waiting_s: number;
}

/** Process groups of one kind, such as all groups of tensor parallelism: a rank is in at most one of them. `group`, `state`, `enqueued`, `completed` are by place in `HangReport.ranks`. `group`: an index into `groups`; `state`: one into `HangReport.states`. Null: the rank is in none, or the source does not say. */
export interface GroupRow {
  readonly completed: readonly (number | null)[];
  readonly enqueued: readonly (number | null)[];
  readonly group: readonly (number | null)[];
  readonly groups: readonly string[];
  readonly name: string;
  readonly state: readonly (number | null)[];
}

/** Who hangs in the job that a run is part of, by the looks of all of its trackers. `hosts`: those looked at; `hosts_without_look`: those whose trackers have not reported one yet. `report` is null if the run was never looked at. `went_on_at`: when it made steps again. */
export interface HangAnswer {
  readonly hosts: readonly string[];
  readonly hosts_without_look: readonly string[];
  readonly looked_at: number | null;
  readonly report: HangReport | null;
  readonly run: string;
  readonly runs: readonly string[];
  readonly went_on_at: number | null;
  readonly workload: string;
}

/** Why the ranks wait. */
export type HangKind = "absent" | "mismatch" | "dead" | "deadlock" | "kernel" | "link" | "storage" | "slow" | "unknown";

/** Stalled jobs, newest first. */
export interface HangList {
  readonly rows: readonly HangRow[];
}

/** A verdict with the picture that it rests on: ranks by process groups. */
export interface HangReport {
  readonly is_partial: boolean;
  readonly looks: number;
  readonly ranks: readonly number[];
  readonly rows: readonly GroupRow[];
  readonly sources: readonly HangSource[];
  readonly states: readonly RankState[];
  readonly taken_ms: number | null;
  readonly verdict: HangVerdict;
}

/** A job that stopped making steps, by one of its runs. */
export interface HangRow {
  readonly held_gpus: number | null;
  readonly is_over: boolean;
  readonly is_sure: boolean;
  readonly kind: string;
  readonly looked_at: number;
  readonly name: string | null;
  readonly place: string | null;
  readonly ranks: readonly number[];
  readonly run: string;
  readonly stalled_at: number;
  readonly title: string;
  readonly user: string | null;
  readonly went_on_at: number | null;
  readonly workload: string;
  readonly world_size: number | null;
}

/** How many ranks a source tells of; RAS counts communicators. */
export interface HangSource {
  readonly count: number;
  readonly name: string;
}

/** Who hangs, where and why. `lost_ratio` and `since_ms` are None if no source has times. */
export interface HangVerdict {
  readonly advice?: string;
  readonly alternatives?: readonly HangKind[];
  readonly certainty?: Certainty;
  readonly collective?: string | null;
  readonly doing?: string | null;
  readonly evidence?: readonly string[];
  readonly group?: string | null;
  readonly group_description?: string | null;
  readonly held_gpus?: number | null;
  readonly kind: HangKind;
  readonly module?: string | null;
  readonly notes?: readonly string[];
  readonly place?: string | null;
  readonly ranks: readonly number[];
  readonly reason: string;
  readonly sequence?: number | null;
  readonly since_ms?: number | null;
  readonly stacks?: readonly StackGroup[];
  readonly stalled?: readonly StalledGroup[];
  readonly title: string;
  readonly world_size: number | null;
}

/** Health. `paused`: why samples are not stored now; `failing`: failing background loops (details: /api/v1/sources). */
export interface Health {
  readonly failing: readonly string[];
  readonly newest_sample_at: number | null;
  readonly paused: string | null;
  readonly status: string;
  readonly version: string;
}

/** Columns, sorted by `from_at`: a holder has GPUs of a node for a time. `node`, `holder`: indices in the course. */
export interface HeldSpans {
  readonly from_at: readonly number[];
  readonly gpus: readonly number[];
  readonly holder: readonly number[];
  readonly node: readonly number[];
  readonly to_at: readonly number[];
}

/** The kind of a search result. */
export type HitKind = "workload" | "user" | "project" | "node";

/** A running workload on the planned nodes. `likely_end_at`: predicted, never after the time limit. */
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

/** An estimate and its 95 % bootstrap interval. */
export interface Interval {
  readonly high: number;
  readonly low: number;
  readonly value: number;
}

/** A measure of the unchanged trace, and over the jittered runs: mean, standard deviation, middle 95 %. */
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

/** The card of a job: what it asked for, what it used, and what that says. Of a requeued job: its latest execution. `executions`: how often it ran. `wasted_gpu_hours`: of GPUs that were idle on average; null if nothing was measured. */
export interface JobCard {
  readonly advice: readonly JobCardAdvice[];
  readonly cluster: string;
  readonly cpu: JobShare;
  readonly cpu_memory: JobShare;
  readonly cpus: number | null;
  readonly curves: readonly JobCurve[];
  readonly ended_at: number | null;
  readonly executions: number;
  readonly exit_code: number | null;
  readonly exit_signal: number | null;
  readonly gpu: JobShare | null;
  readonly gpu_hours: number;
  readonly gpu_memory: JobShare | null;
  readonly gpus: number;
  readonly hint: string | null;
  readonly is_running: boolean;
  readonly memory_requested_bytes: number | null;
  readonly name: string | null;
  readonly node_count: number;
  readonly nodes: readonly JobCardNode[];
  readonly notes: readonly JobCardNote[];
  readonly partition: string | null;
  readonly project: string | null;
  readonly qos: string | null;
  readonly run_s: number;
  readonly similar: PastJobs | null;
  readonly started_at: number;
  readonly state: WorkloadState;
  readonly time_limit_s: number | null;
  readonly time_ratio: number | null;
  readonly user: string | null;
  readonly wasted_gpu_hours: number | null;
  readonly workload: string;
}

/** What would have been enough, with a margin, from this and similar past jobs. `asked` and `enough`: bytes per node, cores, seconds, GPUs, or a share of a GPU. `saved` is in `saved_unit`. `sooner_s`: how much sooner the planner would have started the job; null if that was not planned. `basis`: number of jobs. */
export interface JobCardAdvice {
  readonly asked: number;
  readonly basis: number;
  readonly enough: number;
  readonly kind: AdviceKind;
  readonly option: string;
  readonly saved: number | null;
  readonly saved_unit: SavedUnit | null;
  readonly sooner_s: number | null;
  readonly text: string;
}

/** One GPU or MIG instance: mean utilization while the job held it, and the most memory it used. */
export interface JobCardGpu {
  readonly index: string;
  readonly memory_total_bytes: number | null;
  readonly memory_used_bytes: number | null;
  readonly unit: string;
  readonly util_ratio: number | null;
}

/** One node of the job; null: no sample says. */
export interface JobCardNode {
  readonly cores: number | null;
  readonly cpu_ratio: number | null;
  readonly cpu_s: number | null;
  readonly gpus: readonly JobCardGpu[];
  readonly memory_limit_bytes: number | null;
  readonly memory_used_bytes: number | null;
  readonly node: string;
}

/** One sentence on what the numbers say. */
export interface JobCardNote {
  readonly code: string;
  readonly level: NoteLevel;
  readonly text: string;
}

/** One quantity over the job's life, at even steps. `subject`: of the job alone, or of its whole nodes. `most`: what it may be at most, such as the allocated cores. */
export interface JobCurve {
  readonly label: string;
  readonly most: number | null;
  readonly name: string;
  readonly start: number;
  readonly step_ms: number;
  readonly subject: MetricSubject;
  readonly unit: MetricUnit;
  readonly values: readonly (number | null)[];
}

/** What was used of what was allocated. `percent` is rounded as the meters of jobstats; `problem`: why it is null. */
export interface JobShare {
  readonly percent: number | null;
  readonly problem: ShareProblem | null;
  readonly ratio: number | null;
  readonly total: number | null;
  readonly used: number | null;
}

/** How a job ended. `unknown`: the trace has no status, or one that ClusterScape does not recognize. */
export type JobStatus = "completed" | "failed" | "cancelled" | "timeout" | "unknown";

/** This cluster's history first, then uploads, newest first. */
export interface JobTraceList {
  readonly traces: readonly JobTraceRow[];
}

/** A job trace in the list. `trace`: its id; `cluster` is this cluster's history, which has no precomputed counts. `notes`: problems in its rows and how they were handled, with the first line numbers. `total_units`: the cluster's size. */
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

/** How terms are combined. */
export type Junction = "and" | "or";

/** How often a rank arrived last at a collective. */
export interface LastArriver {
  readonly rank: number;
  readonly times: number;
}

/** The likely start of a workload, and the interval that contains it with probability `level`. */
export interface LikelyStart {
  readonly from_at: number;
  readonly level: number;
  readonly likely_at: number;
  readonly to_at: number;
}

/** `counts[i]`: number of values in [`edges[i]`, `edges[i + 1]`); `zeros`: number of zeros, outside the log scale. */
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

/** A new token. `secret` is returned only here. */
export interface MadeToken {
  readonly secret: string;
  readonly token: TokenAnswer;
}

/** Which mails on ended jobs a user gets; null: what the site sends by default. */
export interface MailChoice {
  readonly choice: MailKind | null;
}

/** Which ended jobs a user gets mails on. */
export type MailKind = "all" | "waste" | "none";

/** A measure without and with the change: means over the same futures, their paired difference and its 95 % interval. `verdict`: better, worse, unclear (the interval contains 0) or same. */
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

/** A value and its 95 % interval; `low` and `high` are None if it cannot be computed. */
export interface Measured {
  readonly high?: number | null;
  readonly low?: number | null;
  readonly value: number;
}

/** A metric of the catalogue. `subject`: what it is measured of, a GPU, the part of a job on a node, or a whole node. */
export interface MetricAnswer {
  readonly aliases: readonly string[];
  readonly help: string;
  readonly is_summary: boolean;
  readonly kind: MetricKind;
  readonly label: string;
  readonly name: string;
  readonly subject: MetricSubject;
  readonly unit: MetricUnit;
}

/** Whether the value itself or only its increase is meaningful. */
export type MetricKind = "gauge" | "counter";

/** What a metric is measured of, which decides the id that its samples are stored under. */
export type MetricSubject = "unit" | "job" | "node" | "source" | "period";

/** Canonical units; the client formats by these. */
export type MetricUnit = "ratio" | "watts" | "joules" | "bytes" | "bytes_per_second" | "hertz" | "celsius" | "seconds" | "count";

/** A model's training data and accuracy. `report`: on the last 30 % of the jobs, of a model trained without them. */
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

/** All models in use. */
export interface ModelCards {
  readonly assumptions: readonly string[];
  readonly models: readonly ModelCard[];
}

/** No alerts are sent for these violations until `expires_at`. */
export interface MuteAnswer {
  readonly author: string;
  readonly created_at: number;
  readonly expires_at: number;
  readonly key: string;
  readonly reason: string;
  readonly rule: string;
  readonly workload: string | null;
}

/** What to mute, why and for how long. */
export interface MuteRequest {
  readonly author: string;
  readonly hours: number;
  readonly reason: string;
  readonly rule: string;
  readonly workload?: string | null;
}

/** An exporter that cannot be matched to one node with certainty, and the setting that confirms the proposed node. */
export interface NameQuestion {
  readonly exporter: string;
  readonly gpus: number;
  readonly host_name: string | null;
  readonly is_counted: boolean;
  readonly problem: string;
  readonly proposed: string | null;
  readonly setting: string;
}

/** GPUs that must become free: `missing_gpus` on `missing_nodes` nodes; 0: enough are free, but others go first. */
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

/** A new comment on a workload. */
export interface NewComment {
  readonly author: string;
  readonly text: string;
  readonly workload: string;
}

/** A change of the user's own password. */
export interface NewPassword {
  readonly new: string;
  readonly old: string;
}

/** A new token; without `owner` it belongs to the current user. */
export interface NewToken {
  readonly days?: number;
  readonly owner?: Owner | null;
  readonly scopes: readonly Scope[];
  readonly title: string;
}

/** A trace whose files will be uploaded. */
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

/** A node, its workloads, and its faults in the last 30 days, ongoing ones first, then the latest. `turns`: when it went out of service and came back, latest first. */
export interface NodeDetail {
  readonly faults: readonly FaultAnswer[];
  readonly node: NodeAnswer;
  readonly turns: readonly NodeTurnAnswer[];
  readonly workloads: readonly WorkloadAnswer[];
}

/** A node's scheduling state, reduced to the cases that readers must distinguish. */
export type NodeState = "idle" | "mixed" | "allocated" | "draining" | "drained" | "down" | "unknown";

/** A change of the node's state: it went out of service, came back, or its reason changed. */
export interface NodeTurnAnswer {
  readonly from_at: number;
  readonly reason: string | null;
  readonly state: NodeState;
}

/** How much a note matters. */
export type NoteLevel = "critical" | "info";

/** From the first submission to the last end, or until a live history was read. Units are those of the trace's sizes. `capacity_units`: stated by the source (`is_capacity_stated`), else a guess with its `capacity_reason`. `utilization`: used / available unit-hours. `time_share_by_level`: shares of the time during which 0–5 %, 5–10 %, … of the capacity was busy; the last includes everything above. `over_capacity_share`: share of the time with more busy units than the capacity, which indicates wrong starts or a wrong capacity. `left_out`: number of excluded jobs, whose start, run time or size is unknown. */
export interface Occupancy {
  readonly capacity_reason: string | null;
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

/** Means over bins that start at `start_s + i · step_s` (seconds of the trace; add `epoch_s` for Unix time). */
export interface OccupancyCourse {
  readonly busy_units: readonly number[];
  readonly running_jobs: readonly number[];
  readonly start_s: number;
  readonly step_s: number;
  readonly waiting_jobs: readonly number[];
  readonly waiting_units: readonly number[];
}

/** An outlier: a GPU significantly far from the others. `kinds`: the features that differ, largest difference first. */
export interface OddUnit {
  readonly distance: number;
  readonly kinds: readonly string[];
  readonly p_value: number;
  readonly sentence: string;
  readonly unit: string;
}

/** How the statistic compares with the value. */
export type Operator = "<" | "<=" | ">" | ">=" | "=" | "!=";

/** Whether an audited action was carried out. */
export type Outcome = "done" | "refused";

/** The owner of a new token. */
export interface Owner {
  readonly login: string;
  readonly way: Way;
}

/** A statement of the paper, tested on traces. `effect`: in `effect_unit`, with the interval for these jobs; `effect_by_user`: with users resampled. `sentence`: the verdict with its numbers; `rests_on`: the data and the criteria. */
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

/** One partition's queue in numbers; `drained_at`: the last planned start of its workloads. `held`: held by their owner or an operator. `blocked`: wait for something other than GPUs: a dependency, a limit, … */
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

/** One past job of the same user with the same name, numbers aside. */
export interface PastJob {
  readonly ended_at: number;
  readonly gpu_util_ratio: number | null;
  readonly gpus: number;
  readonly memory_peak_bytes: number | null;
  readonly run_s: number;
  readonly state: WorkloadState;
  readonly workload: string;
}

/** Past jobs of the same user with the same name, numbers aside: how many, how they went, and the latest ones. */
export interface PastJobs {
  readonly completed: number;
  readonly count: number;
  readonly latest: readonly PastJob[];
  readonly longest_run_s: number;
  readonly median_run_s: number;
}

/** Seconds of the critical path on a rank, by kind: compute, transfer, communication, host. */
export interface PathPart {
  readonly kind: string;
  readonly length_s: number;
  readonly rank: number;
}

/** A period of the calendar by its name. */
export interface PeriodName {
  readonly kind: CalendarStep;
  readonly name: string;
}

/** The placement that the scheduler seems to use, and how certain that is. `starts`: recent starts at which several nodes had room; `fitting`: those that chose as this placement would; `by_chance`: how many would if nodes were chosen at random. `assumed`: they do not decide. */
export interface PlacementEvidence {
  readonly by_chance: number;
  readonly certainty: "sure" | "likely" | "assumed";
  readonly fitting: number;
  readonly placement: string;
  readonly since: number | null;
  readonly starts: number;
  readonly text: string;
  readonly title: string;
}

/** Trained on the first jobs by submission, tested on the last; jobs that ended after the cut were not used for training. */
export interface PredictionReport {
  readonly cut_s: number;
  readonly tables: readonly PredictionTable[];
  readonly tested: number;
  readonly trained: number;
}

/** All predictors on the same jobs, which had run for `elapsed_s`; the last row is of the one that was best lately. `chosen`: which these were, most often first. `q90_under_ratio`: share of jobs that ran longer than the calibrated 90 % quantile (ideal 0.1). */
export interface PredictionTable {
  readonly chosen: readonly PredictorShare[];
  readonly elapsed_s: number;
  readonly interval_90_cover_ratio: Interval;
  readonly jobs: number;
  readonly q90_under_ratio: Interval;
  readonly rows: readonly PredictorRow[];
}

/** Accuracy of one predictor. `under_ratio`: share of jobs that ran longer than predicted. */
export interface PredictorRow {
  readonly accuracy: Interval;
  readonly name: string;
  readonly under_ratio: Interval;
}

/** The share of jobs or forecasts for which a predictor was chosen. */
export interface PredictorShare {
  readonly name: string;
  readonly ratio: number;
}

/** The points of one priority factor: age, fair share, size, partition, QOS, … */
export interface PriorityPart {
  readonly name: string;
  readonly points: number;
  readonly title: string;
}

/** What went wrong and what to do. */
export interface Problem {
  readonly code: string;
  readonly hint?: string | null;
  readonly message: string;
}

/** The body of every error response. */
export interface ProblemAnswer {
  readonly error: Problem;
}

/** The promised starts of a workload. The slips sum to `last_at` (or the start) − `first_at`. */
export interface PromiseStory {
  readonly first_at: number;
  readonly first_told_at: number;
  readonly is_schedulers: boolean;
  readonly last_at: number;
  readonly slipped_s: number;
  readonly slips: readonly SlipRow[];
  readonly started_at: number | null;
}

/** What was published about first come, first served with this backfilling on the same trace. Times in seconds. */
export interface PublishedChoice {
  readonly backfill: string;
  readonly bounded_slowdown: number;
  readonly title: string;
  readonly utilization_ratio: number;
  readonly violation_s: number;
  readonly wait_s: number;
}

/** Quantiles of the values that are not missing. */
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

/** All waiting workloads, in queue order. `drained_at`: likely start of the last one, or planned without a forecast. `awaited`: kinds of sources that have not responded since the start; until they do, workloads may be missing. Likely starts are the forecasts of `GET /scheduling/waiting`; `calibrated_on`: number of waits used to calibrate them. */
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
  readonly placement: PlacementEvidence;
  readonly reservations: readonly ReservationAnswer[];
  readonly workloads: readonly QueueRow[];
}

/** A waiting workload. `position`: among those of its partition that wait only for GPUs; null: it waits for something else. `planned_at`: latest start by time limits, without later arrivals; `scheduler_at`: the scheduler's own estimate. `slipped_s` > 0: later than first promised. */
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

/** Jobs that were submitted when `low` to `high` jobs waited. */
export interface QueueThird {
  readonly high: number;
  readonly jobs: number;
  readonly low: number;
  readonly mean_size_units: number;
  readonly median_requested_s: number | null;
  readonly median_run_s: number | null;
  readonly median_size_units: number;
}

/** A change of the queue; null and empty: unchanged. A policy replaces the scheduler's priorities. `added`: nodes by partition, of its most common kind. `limits`: the most GPUs that a workload may request, by partition. `first`: workloads that are moved to the front. `priorities`: new priorities by workload. */
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

/** The correction of a rank's clock. */
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

/** How a rank stands to the pending call of its group. */
export type RankState = "clear" | "waiting" | "absent" | "unstarted" | "odd" | "dead" | "unknown";

/** The value of one condition on one unit, in canonical units; null: unknown. */
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

/** A related span: the launch, the other end of a message, the same operator on another rank, the previous or next span. */
export interface RelatedSpan {
  readonly end_ns: number;
  readonly lane: string | null;
  readonly name: string;
  readonly rank: number;
  readonly span: number;
  readonly span_class: string;
  readonly start_ns: number;
}

/** Coverage of past forecasts. `told`: as shown to users, should equal the nominal level; `sampled`: as simulated. `told` covers the first forecast of each workload, `later` those made after it had waited for some time. `quarters`: of the first ones, in the order of their starts. `little_ratio`: share of intervals that were too wide to be of use. */
export interface ReliabilityAnswer {
  readonly bins: readonly WaitBinRow[];
  readonly jobs: number;
  readonly later: readonly Coverage[];
  readonly later_jobs: number;
  readonly little_ratio: number | null;
  readonly median_error_s: number | null;
  readonly median_width_90_s: number | null;
  readonly open: number;
  readonly quarters: readonly CoverageQuarter[];
  readonly sampled: readonly Coverage[];
  readonly since: number | null;
  readonly told: readonly Coverage[];
}

/** Groups of repeated jobs: same user, same size, and a run time within 10 % of the group's mean so far. `cover[i]`: share of all jobs that are in the i + 1 largest groups of their users. `top_10_cover`: the last of these, with users resampled. `mean_user_cover`: its mean over users, with equal weights. */
export interface Repetition {
  readonly cover: readonly number[];
  readonly groups: number;
  readonly jobs: number;
  readonly mean_user_cover: number;
  readonly top_10_cover: Measured;
  readonly users: number;
}

/** A reservation of nodes, active now (`is_active`) or later. `gpus`: GPUs of all its nodes. */
export interface ReservationAnswer {
  readonly ends_at: number;
  readonly gpus: number;
  readonly is_active: boolean;
  readonly is_maintenance: boolean;
  readonly name: string;
  readonly nodes: readonly string[];
  readonly starts_at: number;
}

/** What an account may do; each role includes the rights of the roles before it. */
export type Role = "viewer" | "researcher" | "lead" | "operator" | "admin";

/** How many of the waiting workloads of one request have room now, and would have if past starts had used another placement. The starts since `since` are placed again, at the same times and for as long; workloads with another request are ignored. */
export interface RoomChange {
  readonly changed: number;
  readonly gpus: number;
  readonly nodes: number;
  readonly now: number;
  readonly partition: string;
  readonly since: number;
  readonly waiting: number;
}

/** A rule as text, sentences, form and document. `form` is null if it fits none; `counts` until it was evaluated. */
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

/** Changes of a rule; omitted fields stay. A new rule needs one of its forms. */
export interface RuleChange {
  /** For the workload's user, in plain words. */
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

/** What a rule matches now. `unjudged`: units that are too young, have too few samples, or lack a metric. `workloads` counts nodes or sources if the rule is about these or GPUs; `units` counts the affected GPUs. */
export interface RuleCounts {
  readonly units: number;
  readonly unjudged: number;
  readonly workloads: number;
}

/** An error in a rule. `column` counts from 1 in its text; `path` points to a field of its form or document. */
export interface RuleFault {
  readonly column?: number | null;
  readonly hint: string | null;
  readonly length?: number | null;
  readonly message: string;
  readonly path?: string | null;
  readonly suggestion?: string | null;
}

/** A rule in one of its forms. A form has no scope: then `text` gives the clauses after the conditions. */
export interface RuleForms {
  readonly document?: Readonly<Record<string, unknown>> | null;
  readonly form?: readonly FormField[] | null;
  readonly text?: string | null;
}

/** All rules in display order; `unreadable`: stored rules that this version cannot read, and why. */
export interface RuleList {
  readonly judged_at: number | null;
  readonly rules: readonly RuleAnswer[];
  readonly unreadable: Readonly<Record<string, string>>;
}

/** Keys of rules in order; rules that are not listed follow. */
export interface RuleOrder {
  readonly keys: readonly string[];
}

/** A rule converted from one representation to all; `fault` if it cannot be read. */
export interface RuleReading {
  readonly document: Readonly<Record<string, unknown>> | null;
  readonly fault: RuleFault | null;
  readonly form: readonly FormRow[] | null;
  readonly text: string;
  readonly words: readonly string[];
}

/** How many GPUs violated each rule: one number per step. */
export interface RuleTimeline {
  readonly gpus: Readonly<Record<string, readonly number[]>>;
  readonly start: number;
  readonly step_ms: number;
}

/** A rule, and the hours of the past to try it on. */
export interface RuleTrial {
  readonly document?: Readonly<Record<string, unknown>> | null;
  readonly form?: readonly FormField[] | null;
  readonly hours?: number;
  readonly text?: string | null;
}

/** Units that violate a rule now, and those on which the same workload violated it earlier. */
export interface RuleUnits {
  readonly past: readonly string[];
  readonly rule: string;
  readonly units: readonly string[];
}

/** One run with all details except its samples. */
export interface RunAnswer {
  readonly command: readonly string[];
  readonly cwd: string | null;
  readonly dropped: number;
  readonly environment: Readonly<Record<string, unknown>>;
  readonly exceptions: readonly string[];
  readonly hangs: readonly RunHang[];
  readonly left_out: Readonly<Record<string, number>>;
  readonly leftovers: number;
  readonly listeners: Readonly<Record<string, RunListener>>;
  readonly listens_to: readonly string[];
  readonly marks: readonly RunMark[];
  readonly not_finite: number;
  readonly row: RunRow;
  readonly series: readonly RunMetric[];
}

/** Joules of a run's GPUs. Scope `process`: its own share; `device`: all that the GPUs used while it ran. */
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

/** Number of stored bytes of each file. */
export interface RunFiles {
  readonly looked_elsewhere?: number | null;
  readonly offsets: Readonly<Record<string, number>>;
}

/** A verdict on a run that made no steps (`model/hangs.py`). `ended_at`: when it made steps again. */
export interface RunHang {
  readonly advice?: string | null;
  readonly at?: number | null;
  readonly certainty?: string | null;
  readonly collective?: string | null;
  readonly ended_at?: number | null;
  readonly evidence?: readonly string[];
  readonly group?: string | null;
  readonly kind: string;
  readonly place?: string | null;
  readonly ranks?: readonly number[];
  readonly reason?: string | null;
  readonly sequence?: number | null;
  readonly since?: number | null;
  readonly title: string;
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

/** One series of a run, identified by metric and unit. Statistics are of its finite samples. */
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

/** A metric that some of the runs have; `scopes`: what it was measured of (process, device, …). */
export interface RunMetricName {
  readonly label: string | null;
  readonly metric: string;
  readonly runs: number;
  readonly scopes: readonly string[];
  readonly unit: string | null;
}

/** The metrics and phases of the requested runs, and whether they have steps and epochs. */
export interface RunMetrics {
  readonly has_epochs: boolean;
  readonly has_steps: boolean;
  readonly metrics: readonly RunMetricName[];
  readonly phases: readonly string[];
}

/** The result of a piece: the offset of the next one, and the number of samples in it. */
export interface RunPiece {
  readonly not_finite: number;
  readonly offset: number;
  readonly samples: number;
}

/** Run workloads that repeat each other, with means and 95 % confidence intervals. */
export interface RunRepeats {
  readonly fairness: Estimate | null;
  readonly joules: Estimate | null;
  readonly label: string;
  readonly makespan_s: Estimate | null;
  readonly per_second: Estimate | null;
  readonly slowdown: Estimate | null;
  readonly workloads: readonly string[];
}

/** A run in a list. `workload` is its id among all workloads of the site. */
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

/** The slowdown of a run compared with running alone (1.3: 30 % longer), and the same for its energy. */
export interface RunSlowdown {
  readonly baseline: readonly string[];
  readonly basis: string;
  readonly energy_ratio: number | null;
  readonly ratio: number;
}

/** Durations of a run's stages in seconds; null for stages that it has not reached. */
export interface RunTimes {
  readonly barrier_s: number | null;
  readonly flush_s: number | null;
  readonly queued_s: number | null;
  readonly running_s: number | null;
}

/** Experiments, newest first; `rows`: their runs. `left_out`: the number of older runs beyond the limit. */
export interface RunTree {
  readonly experiments: readonly RunExperiment[];
  readonly left_out: number;
  readonly rows: readonly RunRow[];
}

/** How much a run did and how fast; `basis` is the metric that measures it, or `steps`. */
export interface RunWork {
  readonly amount: number | null;
  readonly basis: string;
  readonly per_second: number | null;
  readonly unit: string;
}

/** Runs that executed together. */
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

/** What is saved. */
export type SavedUnit = "gpu_hours" | "core_hours" | "gib_hours" | "hours";

/** A saved view, shared by all users. The page defines `document`; it has at least `version` and `title`. */
export interface SavedView {
  readonly document: Readonly<Record<string, unknown>>;
  readonly name: string;
  readonly title: string;
  readonly written_at: number;
}

/** All saved views by name; `start_view` is the name of one, or `builtin:…` for a built-in view, or null. */
export interface SavedViews {
  readonly start_view: string | null;
  readonly views: readonly SavedView[];
}

/** What an API token may be used for; never more than its owner's role allows. */
export type Scope = "read" | "runs" | "write" | "admin";

/** One search result: its key, its label, and a line of details. */
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

/** An uploaded file. */
export interface SentFile {
  readonly path: string;
  readonly size: number;
}

/** The current user, and how to sign in. `provider`: name for the button "Sign in with …"; null: no provider. */
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

/** The violations of one user or project; a null name: unknown. */
export interface Share {
  readonly gpu_hours: number;
  readonly name: string | null;
  readonly workloads: number;
}

/** Why a share is not ratios. */
export type ShareProblem = "missing" | "above_all" | "nothing" | "mig";

/** What the sign-in form sends: the server's token, or a user name and a password. */
export interface SignIn {
  readonly login?: string | null;
  readonly password?: string | null;
  readonly token?: string | null;
}

/** One policy with one backfilling. `jobs` is null if there are too many to draw; `fingerprint` identifies the result. `omega` is null if the backfilling is not relaxed. */
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

/** Means over bins that start at `start_s + i · step_s`. */
export interface SimulatedCourse {
  readonly busy_units: readonly number[];
  readonly start_s: number;
  readonly step_s: number;
  readonly waiting_jobs: readonly number[];
}

/** Every job of a small trace, for a Gantt chart; `lane`: the lowest unit that it is drawn on. */
export interface SimulatedJobs {
  readonly end_s: readonly number[];
  readonly job: readonly string[];
  readonly lane: readonly number[];
  readonly start_s: readonly number[];
  readonly submit_s: readonly number[];
  readonly units: readonly number[];
}

/** Waits of the jobs of `low` to `high` units, compared with first come, first served with the same backfilling. `is_starved`: the 99th percentile is at least twice as long and an hour longer. References are null if the policy is FCFS. */
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

/** The state and results of a simulation. `progress`: 0–1; `problem`: why it failed; `asked`: the request. `choices` are added one by one, in the order of the request. `notes`: jobs that were excluded or changed. `published`: known results about this trace, found by its name. */
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
  readonly published?: readonly PublishedChoice[];
  readonly semantics: string;
  readonly simulated_jobs: number;
  readonly simulation: string;
  readonly size_unit: "processors" | "gpus" | "nodes";
  readonly state: "running" | "done" | "failed" | "stopped";
  readonly trace: string;
}

/** A request to simulate every policy with every backfilling on one trace. `processors`: cluster size; null: the trace's. `estimates`: the run times that the scheduler assumes; predicted: from the user's last two runs; boosted and elapsed-aware: from models trained on the jobs that had ended by then. `omegas`: the shares by which relaxed backfilling may delay a promise, each of them simulated. `whole_at`: the queue length at which adaptive relaxation is full. `jitter`: number of runs with run times ±1 s, from which the intervals are computed. */
export interface SimulationAsk {
  readonly backfills?: readonly string[];
  readonly estimates?: "request" | "actual" | "predicted" | "boosted" | "elapsed-aware";
  readonly jitter?: number;
  readonly omegas?: readonly number[];
  readonly policies?: readonly string[];
  readonly processors?: number | null;
  readonly semantics?: string;
  readonly trace: string;
  readonly whole_at?: number;
}

/** Stored results, newest first. */
export interface SimulationList {
  readonly simulations: readonly SimulationRow[];
}

/** A stored result; `asked`: its request. */
export interface SimulationRow {
  readonly asked: SimulationAsk;
  readonly made_at: number;
  readonly simulation: string;
  readonly trace: string;
}

/** The available options; `relaxed`: backfillings that take a factor; `placements`: for simulations with nodes. */
export interface SimulatorOptions {
  readonly backfills: readonly string[];
  readonly estimates: readonly string[];
  readonly placements: readonly string[];
  readonly policies: readonly string[];
  readonly relaxed: readonly string[];
  readonly semantics: readonly string[];
}

/** The unit of a finding's size. */
export type SizeUnit = "gpu_hours" | "seconds" | "share";

/** Why a promised start moved. */
export type SlipCause = "overdue" | "limit_changed" | "nodes_changed" | "ended" | "left" | "started" | "arrived" | "reordered" | "scheduler" | "unseen" | "own_start";

/** One change of the promised start; `words`: its cause as text. */
export interface SlipRow {
  readonly at: number;
  readonly by: readonly string[];
  readonly cause: SlipCause;
  readonly change_s: number;
  readonly words: string;
}

/** One source that fails, or exceeds a limit. */
export interface SourceAnswer {
  readonly at: number;
  readonly hint: string | null;
  readonly is_ok: boolean;
  readonly message: string | null;
  readonly node: string | null;
  readonly source: string;
}

/** The sources of one kind: how many, how many fail, and the failing ones (the first 50). `limited`: how many return more than `limits.sources` accepts; `notes` are the first 50 of them. */
export interface SourceGroup {
  readonly failing: number;
  readonly failures: readonly SourceAnswer[];
  readonly kind: string;
  readonly last_at: number | null;
  readonly limited: number;
  readonly notes: readonly SourceAnswer[];
  readonly total: number;
}

/** Data sources and their health, dropped rows, and what the store holds. */
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

/** One span in full. `median_ns`: of all spans of its name; `peers`: the same instance on other ranks. */
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

/** Ranks with equal stacks, innermost frame first. */
export interface StackGroup {
  readonly frames: readonly string[];
  readonly ranks: readonly number[];
}

/** A process group with a pending call: who is in it, and for whom it waits. `is_victim`: it waits for other groups; `waits_for`: their places in the list of stalled groups. */
export interface StalledGroup {
  readonly collective: string | null;
  readonly description: string | null;
  readonly group: string;
  readonly is_victim: boolean;
  readonly missing: readonly number[];
  readonly sequence: number | null;
  readonly since_ms?: number | null;
  readonly waiting: readonly number[];
  readonly waits_for?: readonly number[];
}

/** The median start of a waiting workload over the futures; `change_s` with the middle 80 % of the differences. */
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

/** When a job would start. `plan_at`: if all jobs use their whole time limits and no others are submitted. `why`: the estimate that was chosen, the start without later jobs, and what makes it uncertain. */
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
  readonly why: ForecastWhy;
}

/** The interval that contains the start with probability `level`. Unix ms. */
export interface StartInterval {
  readonly from_at: number;
  readonly level: number;
  readonly to_at: number;
}

/** The start view of the page: a saved view, `builtin:…` for a built-in view, or null for the default. */
export interface StartView {
  readonly name: string | null;
}

/** What could start now on one machine type of a partition; defined in `query/summary.py`. */
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

/** A summary of a series. */
export type StatisticKind = "min" | "max" | "mean" | "std" | "percentile" | "above" | "below" | "longest_above" | "longest_below" | "now" | "slope" | "increase";

/** Run times of jobs with this status. `ratio_to_completed`: median over users of their median with this status / completed. Only users with at least 5 jobs of both kinds count (`users`); the interval resamples them. */
export interface StatusRunTime {
  readonly jobs: number;
  readonly median_run_s: number;
  readonly ratio_to_completed: Measured | null;
  readonly status: JobStatus;
  readonly users: number;
}

/** `share`: of the jobs whose end is known, with Wilson's interval; `share_by_user`: with users resampled. */
export interface StatusShare {
  readonly jobs: number;
  readonly share: Measured;
  readonly share_by_user: Measured | null;
  readonly status: JobStatus;
  readonly unit_hours: number;
  readonly unit_hours_share: number | null;
}

/** What the metric store holds. If it is a server: samples in the spool until it accepts them again, samples lost since the start, and why it accepts none now. */
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

/** What a rule applies to. */
export type Subject = "workloads" | "gpus" | "nodes" | "sources" | "users" | "projects";

/** By thirds of the queue length at submission. `*_ratio`: median (size: mean) in the longest third / in the shortest. */
export interface SubmissionBehavior {
  readonly run_ratio: Measured | null;
  readonly size_ratio: Measured | null;
  readonly thirds: readonly QueueThird[];
}

/** What a rank spends a step with. Every moment of a step belongs to one kind, so they add up to its length. */
export type TimeKind = "compute" | "slower_compute" | "transferring" | "waiting" | "data_loading" | "garbage_collection" | "checkpoint" | "scalar_read" | "copy_to_host" | "synchronization" | "allocation" | "start_up" | "runtime_call" | "launching" | "host_code" | "core_wait" | "pause" | "idle";

/** The time range [start, end). */
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
  readonly waiting: readonly WaitingTrend[];
  readonly waiting_gpus: readonly number[];
}

/** A token without its secret. `start`: its first characters, to recognize it. */
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

/** Clock corrections of all ranks and the remaining error; null: unknown. */
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

/** Seconds of every rank and step by `TimeKind`: `seconds[kind][rank][step]`, in the order of `kinds`, `ranks` and `steps`; null where a rank did not record the step. Over kinds they add up to the length of the rank's step. */
export interface TraceAttribution {
  readonly kinds: readonly TimeKind[];
  readonly ranks: readonly number[];
  readonly seconds: readonly (readonly (readonly (number | null)[])[])[];
  readonly steps: readonly number[];
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

/** Seconds per step of one item in both runs; `low_s`/`high_s`: the 95 % interval of the difference (bootstrap over steps), null with too few steps. `is_significant`: the interval excludes 0, and the difference is large enough. */
export interface TraceChange {
  readonly after_s: number | null;
  readonly before_s: number | null;
  readonly difference_s: number;
  readonly high_s: number | null;
  readonly is_significant: boolean;
  readonly kind: "step" | "cause" | "breakdown" | "phase" | "operator" | "rank";
  readonly low_s: number | null;
  readonly name: string;
  readonly rank: number | null;
  readonly sentence: string;
}

/** How many collectives and messages were matched across ranks, and which ranks arrived last. */
export interface TraceCollectives {
  readonly last_arrivers: readonly LastArriver[];
  readonly matched: number;
  readonly messages: number;
  readonly unmatched_spans: number;
}

/** One trace. Times in seconds; sizes and unit-hours in `size_unit`. `epoch_s`: added to a time of the trace gives Unix time; null if the trace does not state its start. `kind`: deep learning if jobs are measured in GPUs. `total_units`: the size of the machine, if stated. Parts for which the trace has no data (ends, waits, users) are null. */
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
  readonly waiting: WaitSummary | null;
}

/** Two runs compared: all changes, largest first, and the important ones as sentences. */
export interface TraceDiffAnswer {
  readonly after: TraceRow;
  readonly before: TraceRow;
  readonly changes: readonly TraceChange[];
  readonly notes: readonly string[];
  readonly sentences: readonly string[];
}

/** Ranks that communicate; `kind`: dp, tp, pp, ep, cp if known. */
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

/** How well run times of a trace are predicted: models trained on its first jobs, tested on the last. */
export interface TracePredictions {
  readonly name: string;
  readonly report: PredictionReport;
  readonly trace: string;
}

/** One rank. `unit`: its GPU, if the trace belongs to a workload whose GPUs are known. */
export interface TraceRank {
  readonly backend: string | null;
  readonly device: string | null;
  readonly is_complete: boolean;
  readonly rank: number;
  readonly source: string;
  readonly stage: number | null;
  readonly unit: string | null;
}

/** All measures and verdicts. `flops_source`: recorded by the profiler, or estimated from the shapes of matrix products and convolutions; null: there are none. */
export interface TraceReportAnswer {
  readonly alignment: TraceAlignment;
  readonly attribution?: TraceAttribution | null;
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

/** A trace in a list. `progress`: 0–1 while it is being read; `headline`: the first verdict, or null. */
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

/** Progress of an import. `importing` includes the upload of its files. */
export type TraceState = "importing" | "ready" | "failed";

/** A step: mean length over its ranks, and where it begins and ends in the trace. */
export interface TraceStep {
  readonly end_ns: number;
  readonly length_s: number;
  readonly ranks: number;
  readonly start_ns: number;
  readonly step: number;
}

/** One to four traces, and the verdicts on the paper's claims. Intervals have the confidence `level`. */
export interface TracesDescription {
  readonly claims: readonly PaperClaim[];
  readonly level: number;
  readonly seed: number;
  readonly timezone: string;
  readonly traces: readonly TraceDescription[];
}

/** What a rule would have matched in the past. `times` counts violations by workloads; the list has the largest ones. */
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

/** Units by state; `total` excludes requested ones. `silent` (the exporter does not respond) and `faulty` (violates a rule on GPUs) count units in any state. */
export interface UnitCounts {
  readonly allocated: number;
  readonly faulty: number;
  readonly free: number;
  readonly silent: number;
  readonly stale: number;
  readonly total: number;
  readonly unavailable: number;
}

/** A rule that a GPU violates now or violated in the window. */
export interface UnitRule {
  readonly rule: string;
  readonly state: "now" | "past";
}

/** The result of a rule for a workload on a unit, and why. `state`: met, not met, not judged, out of scope. */
export interface UnitVerdict {
  readonly readings: readonly ReadingAnswer[];
  readonly rule: string;
  readonly state: string;
  readonly unit: string;
  readonly why: string;
}

/** Which units violate which rules at one moment, in the order of the rules. */
export interface UnitViolations {
  readonly at: number;
  readonly rules: readonly RuleUnits[];
}

/** Usage of [start, end) in steps of the calendar; `edges` are their starts and the end of the last one. `groups`: those with the most GPU-hours; `others`: the rest, if there is one. `is_measured`: whether samples were read; false if there are too many. */
export interface UsageAnswer {
  readonly by: readonly UsageKey[];
  readonly currency: string | null;
  readonly edges: readonly number[];
  readonly end: number;
  readonly group_count: number;
  readonly groups: readonly UsageGroup[];
  readonly is_measured: boolean;
  readonly name: string;
  readonly others: UsageFigures | null;
  readonly start: number;
  readonly step: CalendarStep;
  readonly steps: readonly UsageFigures[];
  readonly timezone: string;
  readonly total: UsageFigures;
  readonly until: number;
}

/** Sums over a period. GPU-hours held, as accounting counts them (without suspensions). Of them `used`, `stalled` (utilized, but multiprocessors inactive), `execution_idle` (idle with a program loaded), `idle` and `unknown` (not measured). `jobs` ran in the period; `users` are theirs. Waits are of jobs that started in it. */
export interface UsageFigures {
  readonly cpu_hours: number;
  readonly ended: number;
  readonly energy_kwh: number | null;
  readonly execution_idle_gpu_hours: number;
  readonly gpu_hours: number;
  readonly idle_gpu_hours: number;
  readonly jobs: number;
  readonly mean_wait_s: number | null;
  readonly median_wait_s: number | null;
  readonly money: number | null;
  readonly stalled_gpu_hours: number;
  readonly started: number;
  readonly submitted: number;
  readonly suspended_gpu_hours: number;
  readonly unknown_gpu_hours: number;
  readonly used_gpu_hours: number;
  readonly users: number;
  readonly wait_hours: number;
}

/** One sentence, and the number that it states. `is_bad`: something was lost. */
export interface UsageFinding {
  readonly code: string;
  readonly is_bad: boolean;
  readonly text: string;
  readonly value: number;
}

/** One user, project and so on. Of the names, those that it is grouped by; null if unknown. */
export interface UsageGroup {
  readonly cpu_hours: readonly number[];
  readonly end_state: string | null;
  readonly figures: UsageFigures;
  readonly gpu_hours: readonly number[];
  readonly gpu_model: string | null;
  readonly job_size: string | null;
  readonly money: readonly number[] | null;
  readonly partition: string | null;
  readonly project: string | null;
  readonly qos: string | null;
  readonly user: string | null;
}

/** What usage can be grouped by. */
export type UsageKey = "user" | "project" | "partition" | "gpu_model" | "qos" | "job_size" | "end_state";

/** A period in full, the periods before it, and findings. `parts`: the same usage by project and user (as far as it is not restricted to one), partition, GPU model, job size, QOS and end state. `former`: the periods before with their sums, and this one. `kinds`: the day, week, month, quarter and year that this period begins in; `kind`: which of them it is, if it is one. */
export interface UsageReport {
  readonly budgets: readonly BudgetAnswer[];
  readonly cluster: string;
  readonly findings: readonly UsageFinding[];
  readonly former: readonly FormerPeriod[];
  readonly kind: CalendarStep | null;
  readonly kinds: readonly PeriodName[];
  readonly next: string;
  readonly parts: readonly UsageAnswer[];
  readonly previous: string;
  readonly project: string | null;
  readonly user: string | null;
}

/** `repetition` is null if users are unknown; `submission` if waits are unknown. `largest_user_share`: share of jobs of the user with the most jobs; near 1, the name may be a placeholder for unknown users. */
export interface UserBehavior {
  readonly largest_user_share: number | null;
  readonly repetition: Repetition | null;
  readonly run_time_by_status: readonly StatusRunTime[];
  readonly submission: SubmissionBehavior | null;
  readonly users: number | null;
}

/** One user's jobs whose end is known. */
export interface UserEnds {
  readonly jobs: number;
  readonly lost_unit_hours: number;
  readonly unsuccessful: Measured;
  readonly user: string;
}

/** Values in the unit of the field's name. `missing`: number of jobs without a value. Without any value the rest is null. */
export interface ValueSpread {
  readonly count: number;
  readonly distribution: DistributionFunction | null;
  readonly histogram: LogHistogram | null;
  readonly mean: number | null;
  readonly missing: number;
  readonly quantiles: Quantiles | null;
}

/** One root cause. `seconds_per_step`: what a step without it would be shorter, with its 95 % interval over steps; `ranks`: where it acts, empty if on all; `evidence`: numbers, seconds unless named. Null: an older report, or unknown. */
export interface Verdict {
  readonly advice?: string;
  readonly evidence: Readonly<Record<string, number | string>>;
  readonly high_s?: number | null;
  readonly is_hidden: boolean;
  readonly kind: string;
  readonly low_s?: number | null;
  readonly occurrences?: CauseOccurrences | null;
  readonly rank: number | null;
  readonly ranks?: readonly number[];
  readonly rhythm?: VerdictRhythm | null;
  readonly seconds_per_step: number;
  readonly sentence: string;
  readonly spans: readonly VerdictSpan[];
  readonly stage: number | null;
}

/** In which steps a cause acts. `step_share`: their share of all steps; `period`: steps between two occurrences (periodic); `since_step`: the first step of those in which it acts until the end (since). `chance`: probability that one rank gets at least as much if ranks are exchanged at random within each step; null if it concerns all ranks, or cannot be tested. */
export interface VerdictRhythm {
  readonly chance?: number | null;
  readonly kind: "persistent" | "intermittent" | "periodic" | "since";
  readonly period?: number | null;
  readonly seconds_per_affected_step: number;
  readonly since_step?: number | null;
  readonly step_share: number;
  readonly steps: readonly number[];
}

/** A span that supports a verdict. */
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

/** All violations of one rule by one workload; `until` is null while any of them lasts. */
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

/** Violations in a time range, most GPU-hours first. A GPU that violates two rules at once counts once in the sums. */
export interface ViolationList {
  readonly end: number;
  readonly gpu_hours: number;
  readonly projects: readonly Share[];
  readonly start: number;
  readonly users: readonly Share[];
  readonly violations: readonly ViolationAnswer[];
}

/** A single violation; `unit` null: the whole workload is blamed. */
export interface ViolationSpan {
  readonly rule: string;
  readonly since: number;
  readonly unit: string | null;
  readonly until: number | null;
}

/** When a hypothetical job would start, and which requests would start sooner. `is_learned`: run times are predicted from this cluster's history; else they are uniform up to the limit. `calibrated_on`: number of waits used to calibrate the intervals; 0: not calibrated yet. */
export interface WaitAnswer {
  readonly alternatives: readonly Alternative[];
  readonly assumptions: readonly string[];
  readonly at: number;
  readonly calibrated_on: number;
  readonly is_learned: boolean;
  readonly start: StartForecast;
}

/** Forecasts of jobs of similar size and queue length. `size` and `queue` are labels of the bin. */
export interface WaitBinRow {
  readonly jobs: number;
  readonly median_error_s: number;
  readonly queue: string;
  readonly size: string;
}

/** What a waiting workload waits for. `HELD` is only what a person holds back. */
export type WaitKind = "room" | "held" | "dependency" | "limit" | "begin_time" | "reservation" | "other";

/** Recorded waits. `mean_bounded_slowdown`: max(1, (wait + run) / max(run, 10 s)) over the jobs that ran. */
export interface WaitSummary {
  readonly by_size: readonly ClassWaits[];
  readonly by_waiting_jobs: readonly ClassWaits[];
  readonly mean_bounded_slowdown: number | null;
  readonly wait_s: ValueSpread;
}

/** What makes a forecast uncertain: run times, or what changes later (new jobs, priorities, cancellations). */
export type WaitUncertainty = "nothing" | "run_times" | "later_jobs";

/** The forecast of a waiting workload. `scheduler_at`: the scheduler's own estimate. */
export interface WaitingForecast {
  readonly scheduler_at: number | null;
  readonly start: StartForecast;
  readonly user: string | null;
  readonly workload: string;
}

/** Forecasts of waiting workloads, in queue order; `left_out`: how many wait for something else, or never fit. */
export interface WaitingForecasts {
  readonly assumptions: readonly string[];
  readonly at: number;
  readonly calibrated_on: number;
  readonly is_learned: boolean;
  readonly left_out: number;
  readonly workloads: readonly WaitingForecast[];
}

/** Why a workload waits, or (`row` is null) waited. `changes`: what would start it sooner, cheapest first. `parts`: the factors of its priority, most points first; empty if the scheduler does not report them. `order`: why those ahead are ahead, counted. `baseline`: the start that `changes` are compared with; the latest only without a forecast. */
export interface WaitingStory {
  readonly ahead: readonly AheadRow[];
  readonly assumptions: readonly string[];
  readonly at: number;
  readonly baseline: "likely" | "latest";
  readonly changes: readonly CheaperChange[];
  readonly holders: readonly HolderRow[];
  readonly needed: Needed | null;
  readonly order: string;
  readonly parts: readonly PriorityPart[];
  readonly planned_nodes: readonly string[];
  readonly promise: PromiseStory | null;
  readonly row: QueueRow | null;
  readonly text: readonly string[];
  readonly workload: string;
}

/** Waiting workloads of one resource type, and the GPUs they request, at the times of a timeline. */
export interface WaitingTrend {
  readonly gpus: readonly number[];
  readonly resource_type: string | null;
  readonly workloads: readonly number[];
}

/** GPU-hours of [start, end) that were allocated, measured, and idle; defined in `query/waste.py`. */
export interface WasteAnswer {
  readonly end: number;
  readonly held_gpu_hours: number;
  readonly idle_below_ratio: number;
  readonly measured_gpu_hours: number;
  readonly start: number;
  readonly wasted_gpu_hours: number | null;
}

/** Authentication method. The same login may belong to different people under different methods. */
export type Way = "static" | "local" | "oidc" | "proxy";

/** A what-if and the predicted step. `error_s`: difference between the simulated and the measured unchanged step; `speed_up_low`/`speed_up_high`: the 95 % interval over steps, null with too few. */
export interface WhatIf {
  readonly error_s: number;
  readonly now_s: number;
  readonly question: string;
  readonly speed_up: number | null;
  readonly speed_up_high: number | null;
  readonly speed_up_low: number | null;
  readonly then_s: number;
}

/** The effect of a change on the queue. `placement`: the scheduler's own, which is simulated without the change. `room`: by request, the largest difference first; empty unless the change names a placement. */
export interface WhatIfAnswer {
  readonly assumptions: readonly string[];
  readonly at: number;
  readonly backfills: readonly string[];
  readonly changes: readonly string[];
  readonly course: WhatIfCourse;
  readonly futures: number;
  readonly is_unchanged: boolean;
  readonly measures: readonly MeasureChange[];
  readonly placement: PlacementEvidence;
  readonly placements: readonly string[];
  readonly policies: readonly string[];
  readonly room: readonly RoomChange[];
  readonly simulated: number;
  readonly warnings: readonly WhatIfWarning[];
  readonly workloads: readonly StartChange[];
}

/** The change: a `straggler` (`rank`) as fast as its peers, stages in `balance`, every `link` (or those of one `process_group`) or `compute` (of a `rank`, a `stage` or all) `factor` times as fast, perfect `overlap`, or another `schedule` (`micro_batches`, `schedule`) of a pipeline. */
export interface WhatIfChange {
  readonly factor?: number;
  readonly kind: "straggler" | "balance" | "link" | "overlap" | "compute" | "schedule";
  readonly micro_batches?: number | null;
  readonly process_group?: string | null;
  readonly rank?: number | null;
  readonly schedule?: "gpipe" | "1f1b" | null;
  readonly stage?: number | null;
}

/** Which workload holds which GPUs from now until all waiting workloads have started, if every run takes its median time and no others are submitted. `left_out`: number of further nodes that are not listed. */
export interface WhatIfCourse {
  readonly baseline: HeldSpans;
  readonly changed: HeldSpans;
  readonly from_at: number;
  readonly holders: readonly WhatIfHolder[];
  readonly left_out: number;
  readonly nodes: readonly WhatIfNode[];
  readonly until_at: number;
}

/** A current workload. `is_waiting`: it is in the queue and does not run yet. */
export interface WhatIfHolder {
  readonly gpus: number | null;
  readonly is_waiting: boolean;
  readonly user: string | null;
  readonly workload: string;
}

/** A node with GPUs. `is_open`: in service now; `will_be_open`: in service with the change. */
export interface WhatIfNode {
  readonly gpus: number;
  readonly is_added: boolean;
  readonly is_open: boolean;
  readonly node: string;
  readonly partition: string;
  readonly will_be_open: boolean;
}

/** The state of a what-if. `progress`: 0–1; `problem`: why it failed; `answer`: once it is done. */
export interface WhatIfProgress {
  readonly answer: WhatIfAnswer | null;
  readonly problem: string | null;
  readonly progress: number;
  readonly run: string;
  readonly state: "running" | "done" | "failed" | "stopped";
}

/** A what-if question about a trace. */
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

/** The signed-in user. `way`: static, local, oidc or proxy; null if the server requires no sign-in. */
export interface Who {
  readonly login: string | null;
  readonly projects: readonly string[];
  readonly role: Role;
  readonly title: string | null;
  readonly way: Way | null;
}

/** A workload with its waiting time, run time and GPU-hours. */
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

/** An event on the time axis; `until` null: a point in time, or ongoing. `unit` null: it concerns all units. */
export interface WorkloadEvent {
  readonly at: number;
  readonly kind: EventKind;
  readonly text: string;
  readonly unit: string | null;
  readonly until: number | null;
}

/** How a workload was started. */
export type WorkloadKind = "job" | "session" | "run";

/** A page of workloads and how many match in total. */
export interface WorkloadList {
  readonly limit: number;
  readonly offset: number;
  readonly total: number;
  readonly workloads: readonly WorkloadAnswer[];
}

/** Where a workload is in its life. The first three are active; the rest have ended. */
export type WorkloadState = "waiting" | "running" | "suspended" | "completed" | "failed" | "cancelled" | "timeout" | "out_of_memory" | "node_failed" | "preempted" | "unknown";

/** The result of every rule on every unit of a running workload, and its violations, including past ones. `verdicts` of a large workload cover only some units, those that violate most rules first; `units` is the number of all. */
export interface WorkloadVerdicts {
  readonly judged_at: number | null;
  readonly spans: readonly ViolationSpan[];
  readonly units: number;
  readonly verdicts: readonly UnitVerdict[];
  readonly violations: readonly ViolationAnswer[];
  readonly workload: string;
}
