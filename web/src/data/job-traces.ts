// Hooks for job traces and predictions. An uploaded trace never changes; this cluster's history grows every minute.

import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import type {
  JobTraceList,
  ModelCards,
  ReliabilityAnswer,
  SimulationAnswer,
  SimulationAsk,
  SimulationList,
  SimulatorOptions,
  TracePredictions,
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
const KEPT_KEY = "simulations";

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

/** Refetches the list after a trace was uploaded or deleted. */
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

/** Predictors compared on an uploaded trace. */
export function useTracePredictions(trace: string): Loadable<TracePredictions> {
  return useVersionedQuery({
    key: ["job-trace-predictions", trace],
    follows: "nothing",
    ask: (client, signal) => client.jobTraces.predictions(trace, signal),
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

export function useSimulations(): Loadable<SimulationList> {
  return useVersionedQuery({
    key: [KEPT_KEY],
    follows: "nothing",
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.jobTraces.simulations(signal),
  });
}

/** Deletes a saved result and refetches the list. */
export function useRemoveSimulation(): (simulation: string) => Promise<void> {
  const { client } = useServices();
  const cache = useQueryClient();
  return useCallback(
    async (simulation) => {
      await client.jobTraces.removeSimulation(simulation);
      cache.removeQueries({ queryKey: ["simulation", simulation] });
      await cache.invalidateQueries({ queryKey: [KEPT_KEY] });
    },
    [client, cache],
  );
}

export interface RunningSimulation extends Loadable<SimulationAnswer> {
  /** Whether the value belongs to this request, and not to the previous one. */
  readonly isOwn: boolean;
  stop(): void;
  /** Starts again after it was stopped or failed. */
  again(): void;
}

/** Polls until the simulation is done. `result`: the id of a saved result to show; null request: disabled. */
export function useSimulation(asked: SimulationAsk | null, result: string): RunningSimulation {
  const { client } = useServices();
  const cache = useQueryClient();
  const queryKey = ["simulation", result === "" ? asked : result];
  const begin = async (signal?: AbortSignal) => {
    const begun = await client.jobTraces.simulate(asked ?? { trace: "" }, signal);
    cache.setQueryData(["simulation", begun.simulation], begun);
    return begun;
  };
  const query = useQuery<SimulationAnswer>({
    queryKey,
    enabled: asked !== null,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
    refetchInterval: ({ state }) => (state.data?.state === "running" ? RUNNING_MS : false),
    queryFn: async ({ signal }) => {
      const begun = cache.getQueryData<SimulationAnswer>(queryKey);
      const id = result || (begun?.state === "running" ? begun.simulation : "");
      if (id === "") return begin(signal);
      try {
        const simulation = await client.jobTraces.simulation(id, signal);
        if (simulation.state === "done") void cache.invalidateQueries({ queryKey: [KEPT_KEY] });
        return simulation;
      } catch (error) {
        if (toProblem(error).status !== 404) throw error;
        return begin(signal);
      }
    },
  });
  const take = (answer: Promise<SimulationAnswer>) => {
    answer.then(
      (value) => cache.setQueryData(queryKey, value),
      () => query.refetch(),
    );
  };
  return {
    isOwn: query.data !== undefined && !query.isPlaceholderData,
    stop: () => query.data && take(client.jobTraces.stopSimulation(query.data.simulation)),
    again: () => take(begin()),
    value: query.data,
    problem: query.error ? toProblem(query.error) : null,
    receivedAt: query.dataUpdatedAt,
    retry: () => void query.refetch(),
  };
}
