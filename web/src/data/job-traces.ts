// Job traces and predictions as hooks. What an uploaded trace says never changes; this cluster's history moves on by the minute.

import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import type {
  JobTraceList,
  ModelCards,
  ReliabilityAnswer,
  SimulationAnswer,
  SimulationAsk,
  SimulatorOptions,
  TracesDescription,
} from "../api/generated.ts";
import type { JobTracesClient } from "../api/job-traces-client.ts";
import type { Loadable } from "../base/loadable.ts";
import { toProblem } from "../base/problem.ts";
import { useServices } from "./services.ts";
import { useVersionedQuery } from "./versioned-query.ts";

const REFRESH_MS = 60_000;
const RUNNING_MS = 500;
const LIST_KEY = "job-traces";

export function useJobTracesClient(): JobTracesClient {
  return useServices().client.jobTraces;
}

export function useJobTraces(): Loadable<JobTraceList> {
  return useVersionedQuery({
    key: [LIST_KEY],
    follows: "nothing",
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.jobTraces.list(signal),
  });
}

/** Asks for the list again, after a trace was brought or taken away. */
export function useRenewJobTraces(): () => void {
  const cache = useQueryClient();
  return useCallback(() => void cache.invalidateQueries({ queryKey: [LIST_KEY] }), [cache]);
}

export function useDescription(traces: readonly string[]): Loadable<TracesDescription> {
  const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return useVersionedQuery({
    key: ["job-traces-description", ...traces],
    follows: "nothing",
    enabled: traces.length > 0,
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.jobTraces.describe(traces, timeZone, signal),
  });
}

export function useModels(): Loadable<ModelCards> {
  return useVersionedQuery({
    key: ["scheduling-models"],
    follows: "nothing",
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.jobTraces.models(signal),
  });
}

export function useReliability(): Loadable<ReliabilityAnswer> {
  return useVersionedQuery({
    key: ["scheduling-reliability"],
    follows: "nothing",
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.jobTraces.reliability(signal),
  });
}

export function useSimulatorOptions(): Loadable<SimulatorOptions> {
  return useVersionedQuery({
    key: ["simulator-options"],
    follows: "nothing",
    ask: (client, signal) => client.jobTraces.simulatorOptions(signal),
  });
}

/** Asked until it is done. Null: nothing is asked. */
export function useSimulation(asked: SimulationAsk | null): Loadable<SimulationAnswer> {
  const { client } = useServices();
  const cache = useQueryClient();
  const queryKey = ["simulation", asked];
  const query = useQuery<SimulationAnswer>({
    queryKey,
    enabled: asked !== null,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
    refetchInterval: ({ state }) => (state.data?.state === "running" ? RUNNING_MS : false),
    queryFn: ({ signal }) => {
      const begun = cache.getQueryData<SimulationAnswer>(queryKey);
      return begun?.state === "running"
        ? client.jobTraces.simulation(begun.simulation, signal)
        : client.jobTraces.simulate(asked ?? { trace: "" }, signal);
    },
  });
  return {
    value: query.data,
    problem: query.error ? toProblem(query.error) : null,
    receivedAt: query.dataUpdatedAt,
    retry: () => void query.refetch(),
  };
}
