// Hooks for the diagnosis of one workload, cached by request. A running workload is refetched periodically, unless the
// reader looks at a part of its past.

import type {
  Comparing,
  DiagnosisClient,
  Histograms,
  LinesQuery,
  Scatter,
  ScatterQuery,
  TimeSpan,
} from "../api/diagnosis-client.ts";
import type { DiagnosisAnswer, WorkloadEvent } from "../api/generated.ts";
import type { SeriesLine } from "../api/series.ts";
import type { Loadable } from "../base/loadable.ts";
import { type DiagnosticsPage, resolveDistance, type Window } from "../state/diagnostics.ts";
import { useVersionedQuery } from "./versioned-query.ts";

const REFRESH_MS = 60_000;
const BINS = 40;
const MOST_POINTS = 20_000;

export function spanOf(window: Window | null): TimeSpan {
  return { startMs: window?.fromMs ?? null, endMs: window?.toMs ?? null };
}

type Comparison = Pick<DiagnosticsPage, "metric" | "plot" | "distance" | "lag" | "linkage" | "count" | "window">;

export function comparingOf(page: Comparison): Comparing {
  const { metric, lag: maxLag, linkage, count } = page;
  return { metric, by: resolveDistance(page), maxLag, linkage, count };
}

export function useDiagnosis(workload: string, page: Comparison): Asked<DiagnosisAnswer> {
  const query = { ...spanOf(page.window), ...comparingOf(page) };
  return useOfWorkload(workload, {
    key: ["diagnosis", workload, query],
    isOpen: page.window === null,
    ask: (client, signal) => client.diagnosis(workload, query, signal),
  });
}

export function useHistograms(
  workload: string,
  metric: string | null,
  window: Window | null,
  enabled: boolean,
): Asked<Histograms> {
  const span = spanOf(window);
  return useOfWorkload(workload, {
    key: ["diagnosis-histograms", workload, metric, span],
    isOpen: window === null,
    enabled: enabled && metric !== null,
    ask: (client, signal) => client.histograms(workload, metric ?? "", span, BINS, signal),
  });
}

export function useLines(workload: string, query: LinesQuery, enabled = true): Asked<readonly SeriesLine[]> {
  return useOfWorkload(workload, {
    key: ["diagnosis-lines", workload, query],
    isOpen: query.startMs === null,
    enabled: enabled && query.metrics.length > 0 && query.points > 1,
    ask: (client, signal) => client.lines(workload, query, signal),
  });
}

export function useScatter(
  workload: string,
  query: Omit<ScatterQuery, "most" | "x" | "y"> & { readonly x: string | null; readonly y: string | null },
): Asked<Scatter> {
  const { x, y } = query;
  return useOfWorkload(workload, {
    key: ["diagnosis-scatter", workload, query],
    isOpen: query.startMs === null,
    enabled: x !== null && y !== null,
    ask: (client, signal) => client.scatter(workload, { ...query, x: x ?? "", y: y ?? "", most: MOST_POINTS }, signal),
  });
}

export function useDiagnosisEvents(workload: string, window: Window | null): Asked<readonly WorkloadEvent[]> {
  const span = spanOf(window);
  return useOfWorkload(workload, {
    key: ["diagnosis-events", workload, span],
    isOpen: window === null,
    ask: (client, signal) => client.events(workload, span, signal),
  });
}

interface Question<T> {
  readonly key: readonly unknown[];
  /** Whether the response changes with time. */
  readonly isOpen: boolean;
  readonly enabled?: boolean;
  ask(client: DiagnosisClient, signal: AbortSignal): Promise<T>;
}

/** Whether the response belongs to the current request, or still to the previous one. */
export interface Asked<T> extends Loadable<T> {
  readonly isCurrent: boolean;
}

/** The previous response stays visible while a new one loads, unless it is about another workload. */
function useOfWorkload<T>(workload: string, { key, isOpen, enabled = true, ask }: Question<T>): Asked<T> {
  const question = JSON.stringify(key);
  const answer = useVersionedQuery<{ readonly workload: string; readonly question: string; readonly value: T }>({
    key,
    follows: "nothing",
    keepsLast: true,
    enabled,
    ...(isOpen ? { everyMs: REFRESH_MS } : {}),
    ask: async (client, signal) => ({ workload, question, value: await ask(client.diagnosis, signal) }),
  });
  return {
    ...answer,
    value: answer.value?.workload === workload ? answer.value.value : undefined,
    isCurrent: answer.value?.question === question,
  };
}
