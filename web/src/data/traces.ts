// Traces of distributed runs, as hooks: what the page asks, kept under what was asked. A trace that is being imported is
// asked for again until it is ready; one that is ready never changes.

import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import type { FlowAnswer, SpanAnswer, TraceAnswer, TraceDiffAnswer, TraceList } from "../api/generated.ts";
import type { Marey } from "../api/marey.ts";
import type {
  FlowQuery,
  MareyQuery,
  NsRange,
  TraceCommunication,
  TraceCurves,
  TraceOperators,
  TraceSteps,
  TracesClient,
} from "../api/traces-client.ts";
import type { Loadable } from "../base/loadable.ts";
import { useServices } from "./services.ts";
import { useVersionedQuery } from "./versioned-query.ts";

/** How often to look how far an import is, and whether somebody else brought a trace. */
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

/** Asks for the lists again, after something was brought or taken away. */
export function useRenewTraces(): () => void {
  const cache = useQueryClient();
  return useCallback(() => void cache.invalidateQueries({ queryKey: [LIST_KEY] }), [cache]);
}

export function useTracesClient(): TracesClient {
  return useServices().client.traces;
}

export function useTrace(trace: string): Loadable<TraceAnswer> {
  const key = ["trace", trace];
  const held = useQueryClient().getQueryData<{ readonly value: { readonly value: TraceAnswer } }>(key);
  const isImporting = held?.value.value.row.state === "importing";
  return useOfTrace(trace, key, (client, signal) => client.trace(trace, signal), {
    ...(isImporting ? { everyMs: IMPORTING_MS } : {}),
  });
}

/** Of a trace that has been read; nothing is asked before. */
export function useSteps(trace: string, isRead: boolean): Loadable<TraceSteps> {
  return useOfTrace(trace, ["trace-steps", trace], (client, signal) => client.steps(trace, signal), {
    enabled: isRead,
  });
}

/** Has a failed import tried once more: what was sent is still there. */
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

/** A picture with the question it answers, so that one can tell whether it is of the window in sight. */
export interface AskedMarey {
  readonly query: MareyQuery;
  readonly marey: Marey;
}

export function useMarey(trace: string, query: MareyQuery | null): Loadable<AskedMarey> {
  return useOfTrace(
    trace,
    ["trace-marey", trace, query],
    async (client, signal) => {
      const asked = query as MareyQuery;
      return { query: asked, marey: await client.marey(trace, asked, signal) };
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

export function useTraceDiff(before: string, after: string | null): Loadable<TraceDiffAnswer> {
  return useOfTrace(
    before,
    ["trace-diff", before, after],
    (client, signal) => client.diff(before, after ?? "", signal),
    { enabled: after !== null },
  );
}

/** The last answer stays in sight while a new one comes, but never that about another trace. */
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
