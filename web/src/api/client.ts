// Every request that the page can make, as one interface. network-client.ts sends them to a server; static-client.ts
// answers from given values, for tests and for reports without a server.

import type { AccessClient } from "./access-client.ts";
import type { DiagnosisClient } from "./diagnosis-client.ts";
import type {
  ClusterSummary,
  JobCard,
  NodeAnswer,
  NodeDetail,
  SavedView,
  SavedViews,
  SearchHits,
  Sources,
  Timeline,
  UsageReport,
  ViewDocument,
  WasteAnswer,
  WorkloadDetail,
  WorkloadList,
  WorkloadState,
} from "./generated.ts";
import type { JobTracesClient } from "./job-traces-client.ts";
import type { RulesClient } from "./rules-client.ts";
import type { RunsClient } from "./runs-client.ts";
import type { SchedulingClient } from "./scheduling-client.ts";
import type { SeriesLine } from "./series.ts";
import type { Snapshot } from "./snapshot.ts";
import type { Tick } from "./tick.ts";
import type { TracesClient } from "./traces-client.ts";
import type { UnitWaste } from "./unit-waste.ts";
import type { ViolationsClient } from "./violations-client.ts";

export interface WorkloadQuery {
  readonly states: readonly WorkloadState[];
  readonly limit: number;
  readonly offset?: number;
}

/** Series of units, of a workload's units, or of a node's units. */
export type SeriesSubject =
  | { readonly unit: string | readonly string[] }
  | { readonly workload: string }
  | { readonly node: string };

export interface SeriesQuery {
  readonly subject: SeriesSubject;
  readonly metrics: readonly string[];
  readonly startMs: number;
  /** Null: until now. */
  readonly endMs: number | null;
  readonly points: number;
}

/** What the server pushes: data versions, its time, and whether ingest is paused and why. */
export interface LiveVersion {
  readonly inventory_version: number;
  readonly tick_version: number;
  /** Changes when the rules or their results change. */
  readonly rules_version: number;
  readonly at: number;
  readonly newest_sample_at: number | null;
  readonly paused: string | null;
}

export interface LiveListener {
  onVersion(version: LiveVersion): void;
  /** The connection was lost and is being reopened. */
  onLost(): void;
}

/** A part of the stored history; null: its start, or now. */
export interface TimelineQuery {
  readonly startMs: number | null;
  readonly endMs: number | null;
  readonly points: number;
}

export interface UsageReportQuery {
  readonly period: string;
  readonly project: string;
  readonly user: string;
}

export interface Client {
  /** The same server at a past minute, for requests that support it: cluster, units, workloads, nodes, waste. */
  at(moment: number | null): Client;
  readonly access: AccessClient;
  readonly rules: RulesClient;
  readonly violations: ViolationsClient;
  readonly diagnosis: DiagnosisClient;
  readonly traces: TracesClient;
  /** Of the present only. */
  readonly scheduling: SchedulingClient;
  readonly jobTraces: JobTracesClient;
  readonly runs: RunsClient;
  timeline(query: TimelineQuery, signal?: AbortSignal): Promise<Timeline>;
  waste(hours: number, signal?: AbortSignal): Promise<WasteAnswer>;
  cluster(signal?: AbortSignal): Promise<ClusterSummary>;
  snapshot(signal?: AbortSignal): Promise<Snapshot>;
  tick(metrics: readonly string[], signal?: AbortSignal): Promise<Tick>;
  workloads(query: WorkloadQuery, signal?: AbortSignal): Promise<WorkloadList>;
  workload(workload: string, signal?: AbortSignal): Promise<WorkloadDetail>;
  /** By any id that Slurm's commands print. */
  job(job: string, signal?: AbortSignal): Promise<JobCard>;
  /** Of a period such as "2026-10", of a project or user; empty: the current month, all. */
  usageReport(query: UsageReportQuery, signal?: AbortSignal): Promise<UsageReport>;
  nodes(signal?: AbortSignal): Promise<readonly NodeAnswer[]>;
  node(node: string, signal?: AbortSignal): Promise<NodeDetail>;
  series(query: SeriesQuery, signal?: AbortSignal): Promise<readonly SeriesLine[]>;
  search(text: string, limit: number, signal?: AbortSignal): Promise<SearchHits>;
  sources(signal?: AbortSignal): Promise<Sources>;
  /** GPU-hours held and wasted in the last hours, by unit and workload. */
  unitWaste(hours: number, signal?: AbortSignal): Promise<UnitWaste>;
  /** Units with all columns as a Parquet file; `at`: at a past minute. */
  unitsFile(units: readonly string[], at: number | null): Promise<Blob>;
  views(signal?: AbortSignal): Promise<SavedViews>;
  saveView(name: string, document: ViewDocument): Promise<SavedView>;
  removeView(name: string): Promise<void>;
  /** The name of a saved view, `builtin:…`, or null for none. */
  setStartView(name: string | null): Promise<void>;
  /** Listens until the returned function is called. */
  listen(listener: LiveListener): () => void;
}
