// Hooks for traces of distributed runs, cached by request. A trace that is being imported is polled until it is ready;
// a ready trace never changes.

import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import type {
  FlowActivity,
  FlowAnswer,
  SpanAnswer,
  TraceAnswer,
  TraceDiffAnswer,
  TraceList,
} from "../api/generated.ts";
import type { Marey } from "../api/marey.ts";
import type {
  FlowActivityQuery,
  FlowQuery,
  HighlightQuery,
  MareyQuery,
  NsRange,
  TraceCommunication,
  TraceCurves,
  TraceHighlights,
  TraceOperators,
  TraceOverview,
  TraceSteps,
  TracesClient,
} from "../api/traces-client.ts";
import type { Loadable } from "../base/loadable.ts";
import { useServices } from "./services.ts";
import { useVersionedQuery } from "./versioned-query.ts";

/** The polling interval for imports and for the list of traces. */
const IMPORTING_MS = 700;
const REFRESH_MS = 30_000;
const LIST_KEY = "traces";

export function useTraces(workload: string | null, enabled = true): Loadable<TraceList> {
  const cached = useQueryClient().getQueriesData<{ readonly value: TraceList }>({ queryKey: [LIST_KEY, workload] });
  const isImporting = cached.some(([, data]) => data?.value.traces.some(({ state }) => state === "importing"));
  return useVersionedQuery({
    key: [LIST_KEY, workload],
    follows: "nothing",
    enabled,
    everyMs: isImporting ? IMPORTING_MS : REFRESH_MS,
    ask: (client, signal) => client.traces.list(workload, signal),
  });
}

/** Refetches the lists after a trace was uploaded or deleted. */
export function useRenewTraces(): () => void {
  const cache = useQueryClient();
  return useCallback(() => void cache.invalidateQueries({ queryKey: [LIST_KEY] }), [cache]);
}

export function useTracesClient(): TracesClient {
  return useServices().client.traces;
}

export function useTrace(trace: string): Loadable<TraceAnswer> {
  const key = ["trace", trace];
  const cached = useQueryClient().getQueryData<{ readonly value: { readonly value: TraceAnswer } }>(key);
  const isImporting = cached?.value.value.row.state === "importing";
  return useOfTrace(trace, key, (client, signal) => client.trace(trace, signal), {
    ...(isImporting ? { everyMs: IMPORTING_MS } : {}),
  });
}

/** Disabled until the trace has been imported. */
export function useSteps(trace: string, isRead: boolean): Loadable<TraceSteps> {
  return useOfTrace(trace, ["trace-steps", trace], (client, signal) => client.steps(trace, signal), {
    enabled: isRead,
  });
}

/** Retries a failed import: the uploaded files are still there. */
export function useReadAgain(trace: string): () => Promise<void> {
  const client = useTracesClient();
  const cache = useQueryClient();
  return useCallback(async () => {
    await client.startImport(trace);
    await Promise.all([
      cache.invalidateQueries({ queryKey: [LIST_KEY] }),
      cache.invalidateQueries({ queryKey: ["trace", trace] }),
    ]);
  }, [client, cache, trace]);
}

/** A graph with its query, so that it is known which window it shows. */
export interface AskedMarey {
  readonly query: MareyQuery;
  readonly marey: Marey;
}

export function useMarey(trace: string, query: MareyQuery | null): Loadable<AskedMarey> {
  return useOfTrace(
    trace,
    ["trace-marey", trace, query],
    async (client, signal) => {
      const mareyQuery = query as MareyQuery;
      return { query: mareyQuery, marey: await client.marey(trace, mareyQuery, signal) };
    },
    { enabled: query !== null },
  );
}

export function useCurves(trace: string, range: NsRange | null, pixels: number): Loadable<TraceCurves> {
  return useOfTrace(
    trace,
    ["trace-curves", trace, range, pixels],
    (client, signal) => client.curves(trace, range as NsRange, pixels, signal),
    { enabled: range !== null },
  );
}

export function useSpan(trace: string, span: number | null): Loadable<SpanAnswer> {
  return useOfTrace(trace, ["trace-span", trace, span], (client, signal) => client.span(trace, span ?? 0, signal), {
    enabled: span !== null,
  });
}

export function useOperators(trace: string, range: NsRange, enabled: boolean): Loadable<TraceOperators> {
  return useOfTrace(
    trace,
    ["trace-operators", trace, range],
    (client, signal) => client.operators(trace, range, signal),
    { enabled },
  );
}

export function useCommunication(trace: string): Loadable<TraceCommunication> {
  return useOfTrace(trace, ["trace-communication", trace], (client, signal) => client.communication(trace, signal));
}

export function useFlow(trace: string, query: FlowQuery): Loadable<FlowAnswer> {
  return useOfTrace(trace, ["trace-flow", trace, query], (client, signal) => client.flow(trace, query, signal));
}

/** What of a flow runs in a window; null: not asked for. */
export function useFlowActivity(trace: string, query: FlowActivityQuery | null): Loadable<FlowActivity> {
  return useOfTrace(
    trace,
    ["trace-flow-activity", trace, query],
    (client, signal) => client.flowActivity(trace, query as FlowActivityQuery, signal),
    { enabled: query !== null },
  );
}

/** When chosen nodes of the flow run; null: none are chosen. */
export function useHighlights(trace: string, query: HighlightQuery | null): Loadable<TraceHighlights> {
  return useOfTrace(
    trace,
    ["trace-highlights", trace, query],
    (client, signal) => client.highlights(trace, query as HighlightQuery, signal),
    { enabled: query !== null },
  );
}

/** The whole trace in bins. */
export function useOverview(trace: string, pixels: number): Loadable<TraceOverview> {
  return useOfTrace(trace, ["trace-overview", trace, pixels], (client, signal) =>
    client.overview(trace, pixels, signal),
  );
}

export function useTraceDiff(before: string, after: string | null): Loadable<TraceDiffAnswer> {
  return useOfTrace(
    before,
    ["trace-diff", before, after],
    (client, signal) => client.diff(before, after ?? "", signal),
    { enabled: after !== null },
  );
}

/** The previous response stays visible while a new one loads, unless it is about another trace. */
function useOfTrace<T>(
  trace: string,
  key: readonly unknown[],
  ask: (client: TracesClient, signal: AbortSignal) => Promise<T>,
  when: { readonly enabled?: boolean; readonly everyMs?: number } = {},
): Loadable<T> {
  const answer = useVersionedQuery<{ readonly trace: string; readonly value: T }>({
    key,
    follows: "nothing",
    keepsLast: true,
    ...when,
    ask: async (client, signal) => ({ trace, value: await ask(client.traces, signal) }),
  });
  return { ...answer, value: answer.value?.trace === trace ? answer.value.value : undefined };
}
