// Hooks for the live queue: waiting workloads, why one waits, and what-if simulations. Refetched when the queue
// changes.

import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type {
  QueueAnswer,
  QueueWhatIf,
  WaitAnswer,
  WaitingStory,
  WhatIfAnswer,
  WhatIfProgress,
} from "../api/generated.ts";
import type { Loadable } from "../base/loadable.ts";
import { Problem, toProblem } from "../base/problem.ts";
import { isWhatIf, type WaitAsk, type WhatIfChoice } from "../state/scheduling.ts";
import { useServices } from "./services.ts";
import { useVersionedQuery } from "./versioned-query.ts";

const REFRESH_MS = 30_000;
const RUNNING_MS = 400;
const LAST_ANSWER = ["last-what-if"];

export function useQueue(): Loadable<QueueAnswer> {
  return useVersionedQuery({
    key: ["queue"],
    follows: "inventory",
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.scheduling.queue(signal),
  });
}

export function useStory(workload: string): Loadable<WaitingStory> {
  return useVersionedQuery({
    key: ["queue", workload],
    follows: "inventory",
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.scheduling.story(workload, signal),
  });
}

export interface AskedWhatIf extends Loadable<WhatIfAnswer> {
  /** Progress of the simulation, 0–1; null: none is running. */
  readonly progress: number | null;
  readonly isStopped: boolean;
  stop(): void;
  again(): void;
}

/**
 * A what-if simulation, which takes seconds: its result is kept until the request changes, and a simulation that is no
 * longer needed is stopped. Meanwhile the value is the previous result.
 */
export function useWhatIf(choice: WhatIfChoice): AskedWhatIf {
  const { client } = useServices();
  const cache = useQueryClient();
  const queryKey = ["what-if", choice];
  const query = useQuery<WhatIfProgress>({
    queryKey,
    enabled: isWhatIf(choice),
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
    refetchInterval: ({ state }) => (state.data?.state === "running" ? RUNNING_MS : false),
    queryFn: async ({ signal }) => {
      const begun = cache.getQueryData<WhatIfProgress>(queryKey);
      const progress =
        begun?.state === "running"
          ? await client.scheduling.whatIf(begun.run, signal)
          : await client.scheduling.startWhatIf(toChange(choice), signal);
      if (progress.state === "failed")
        throw new Problem(progress.problem ?? "The simulation failed", { code: "what_if" });
      if (progress.answer) cache.setQueryData(LAST_ANSWER, progress.answer);
      return progress;
    },
  });
  const running = query.data?.state === "running" && !query.isPlaceholderData ? query.data : null;
  useEffect(() => {
    const run = running?.run;
    return () => {
      if (run === undefined) return;
      const queries = cache.getQueriesData<WhatIfProgress>({ queryKey: ["what-if"] });
      const [key] = queries.find(([, progress]) => progress?.run === run && progress.state === "running") ?? [];
      if (key === undefined) return;
      cache.removeQueries({ queryKey: key });
      client.scheduling.stopWhatIf(run).catch(() => undefined);
    };
  }, [running?.run, cache, client]);
  const isAsking = running !== null || (query.isFetching && query.isPlaceholderData);
  return {
    value: query.data?.answer ?? (isAsking ? cache.getQueryData<WhatIfAnswer>(LAST_ANSWER) : undefined),
    problem: query.error ? toProblem(query.error) : null,
    receivedAt: query.dataUpdatedAt,
    retry: () => void query.refetch(),
    progress: running?.progress ?? (query.isFetching && query.data?.answer == null ? 0 : null),
    isStopped: query.data?.state === "stopped",
    stop: () => {
      if (!running) return;
      cache.setQueryData(queryKey, { ...running, state: "stopped" });
      client.scheduling.stopWhatIf(running.run).catch(() => undefined);
    },
    again: () => void query.refetch(),
  };
}

/** When a job that has not been submitted would start. */
export function useWait(ask: WaitAsk | null): Loadable<WaitAnswer> {
  const { client } = useServices();
  const query = useQuery({
    queryKey: ["wait", ask],
    enabled: ask !== null,
    retry: false,
    refetchInterval: REFRESH_MS,
    queryFn: ({ signal }) =>
      client.scheduling.wait(
        { gpus: ask?.gpus ?? 1, hours: ask?.hours ?? 1, partition: ask?.partition || null },
        signal,
      ),
  });
  return toLoadable(query);
}

export function toChange(choice: WhatIfChoice): QueueWhatIf {
  return {
    policy: choice.policy || null,
    backfill: choice.backfill || null,
    placement: choice.placement || null,
    drained: choice.drained,
    added: toCounts(choice.added),
    limits: toCounts(choice.limits),
    first: choice.first,
  };
}

function toCounts(pairs: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(
    pairs.map((pair) => [pair.slice(0, pair.lastIndexOf(":")), Number(pair.slice(pair.lastIndexOf(":") + 1))]),
  );
}

interface Asked<T> {
  readonly data: T | undefined;
  readonly error: Error | null;
  readonly dataUpdatedAt: number;
  refetch(): unknown;
}

function toLoadable<T>(query: Asked<T>): Loadable<T> {
  return {
    value: query.data,
    problem: query.error ? toProblem(query.error) : null,
    receivedAt: query.dataUpdatedAt,
    retry: () => void query.refetch(),
  };
}
