// Hooks for the requests of views. Responses are cached by key and refetched when the server has newer data.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { SeriesSubject } from "../api/client.ts";
import type {
  ClusterSummary,
  NodeAnswer,
  NodeDetail,
  SearchHits,
  Sources,
  Timeline,
  WasteAnswer,
  WorkloadDetail,
  WorkloadList,
  WorkloadState,
} from "../api/generated.ts";
import type { SeriesLine } from "../api/series.ts";
import { MINUTE_MS } from "../base/durations.ts";
import type { Loadable } from "../base/loadable.ts";
import { toProblem } from "../base/problem.ts";
import type { Moment } from "../state/time.ts";
import { useMoment } from "../state/use-moment.ts";
import { useServices } from "./services.ts";
import { useVersionedQuery } from "./versioned-query.ts";

/** The limit of the server, and what a page can sort and search quickly. */
export const MOST_WORKLOADS = 10_000;

export const ACTIVE_STATES: readonly WorkloadState[] = ["running", "waiting", "suspended"];

export function useCluster(): Loadable<ClusterSummary> {
  return useVersionedQuery({ key: ["cluster"], follows: "both", ask: (client, signal) => client.cluster(signal) });
}

const WASTE_HOURS = 24;
/** The server evaluates whole steps of ten minutes. */
const WASTE_EVERY_MS = 600_000;

/** GPU-hours wasted in the last day. */
export function useWaste(): Loadable<WasteAnswer> {
  return useVersionedQuery({
    key: ["waste", "total", WASTE_HOURS],
    follows: "moment",
    everyMs: WASTE_EVERY_MS,
    ask: (client, signal) => client.waste(WASTE_HOURS, signal),
  });
}

const TIMELINE_EVERY_MS = 60_000;

/** The stored history as curves: the last `spanMs`, or all of it with null. */
export function useTimeline(spanMs: number | null, points: number): Loadable<Timeline> {
  const { clock } = useServices();
  return useVersionedQuery({
    key: ["timeline", spanMs, points],
    follows: "nothing",
    keepsLast: true,
    everyMs: TIMELINE_EVERY_MS,
    ask: (client, signal) => {
      // Rounded to whole minutes, so that equal requests share one response.
      const startMs = spanMs === null ? null : Math.floor((clock.now() - spanMs) / MINUTE_MS) * MINUTE_MS;
      return client.timeline({ startMs, endMs: null, points }, signal);
    },
  });
}

export function useNodes(enabled: boolean): Loadable<readonly NodeAnswer[]> {
  return useVersionedQuery({
    key: ["nodes"],
    follows: "inventory",
    enabled,
    ask: (client, signal) => client.nodes(signal),
  });
}

export function useNode(node: string): Loadable<NodeDetail> {
  return useVersionedQuery({
    key: ["node", node],
    follows: "inventory",
    ask: (client, signal) => client.node(node, signal),
  });
}

export function useWorkloads(states: readonly WorkloadState[], enabled: boolean): Loadable<WorkloadList> {
  return useVersionedQuery({
    key: ["workloads", states],
    follows: "inventory",
    enabled,
    keepsLast: true,
    ask: (client, signal) => client.workloads({ states, limit: MOST_WORKLOADS }, signal),
  });
}

export function useWorkload(workload: string): Loadable<WorkloadDetail> {
  return useVersionedQuery({
    key: ["workload", workload],
    follows: "inventory",
    ask: (client, signal) => client.workload(workload, signal),
  });
}

export function useSources(enabled: boolean): Loadable<Sources> {
  return useVersionedQuery({
    key: ["sources"],
    follows: "both",
    enabled,
    ask: (client, signal) => client.sources(signal),
  });
}

export interface SeriesRange {
  readonly startMs: number;
  /** Null: until now, updated. */
  readonly endMs: number | null;
}

const MOST_POINTS = 160;
const FEWEST_POINTS = 40;
/** Values in one response: what a browser processes without a pause. */
const MOST_VALUES = 120_000;
const REFRESH_MS = 15_000;

/** A series without an end ends at the minute that the screen shows. */
export function endAt({ startMs, endMs }: SeriesRange, moment: Moment): SeriesRange {
  return { startMs, endMs: moment === null ? endMs : Math.min(endMs ?? moment, moment) };
}

/** With many units each gets fewer points; a series without an end is refetched when it has a new point. */
export function useSeries(
  subject: SeriesSubject,
  metrics: readonly string[],
  wanted: SeriesRange,
  unitCount: number,
): Loadable<readonly SeriesLine[]> {
  const { clock } = useServices();
  const range = endAt(wanted, useMoment());
  const affordable = Math.floor(MOST_VALUES / Math.max(1, unitCount * metrics.length));
  const points = Math.min(MOST_POINTS, Math.max(FEWEST_POINTS, affordable));
  // Rounded, because the timer restarts with every change of its interval.
  const everyMs = Math.max(1, Math.ceil((clock.now() - range.startMs) / points / REFRESH_MS)) * REFRESH_MS;
  return useVersionedQuery({
    key: ["series", subject, metrics, range, points],
    follows: "nothing",
    keepsLast: true,
    ...(range.endMs === null ? { everyMs } : {}),
    ask: (client, signal) => client.series({ subject, metrics, ...range, points }, signal),
  });
}

/** Hits for the typed text; the previous ones stay until the new ones arrive. */
export function useSearch(text: string): Loadable<SearchHits> {
  const { client } = useServices();
  const query = useQuery({
    queryKey: ["search", text],
    enabled: text !== "",
    placeholderData: keepPreviousData,
    staleTime: 10_000,
    queryFn: ({ signal }) => client.search(text, SEARCH_LIMIT, signal),
  });
  return {
    value: query.data,
    problem: query.error ? toProblem(query.error) : null,
    receivedAt: query.dataUpdatedAt,
    retry: () => void query.refetch(),
  };
}

const SEARCH_LIMIT = 20;
