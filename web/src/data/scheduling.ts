// The live queue as hooks: who waits, why one does, what a change would do. Asked again when the queue changed.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { QueueAnswer, QueueWhatIf, WaitAnswer, WaitingStory, WhatIfAnswer } from "../api/generated.ts";
import type { Loadable } from "../base/loadable.ts";
import { toProblem } from "../base/problem.ts";
import { isWhatIf, type WaitAsk, type WhatIfChoice } from "../state/scheduling.ts";
import { useServices } from "./services.ts";
import { useVersionedQuery } from "./versioned-query.ts";

const REFRESH_MS = 30_000;

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

/** A queue that was asked about stays as it was then until the question changes: a simulation takes seconds. */
export function useWhatIf(
  choice: WhatIfChoice,
  pictureInS: number,
): Loadable<WhatIfAnswer> & { readonly isAsking: boolean } {
  const { client } = useServices();
  const query = useQuery({
    queryKey: ["what-if", choice, pictureInS],
    enabled: isWhatIf(choice),
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
    queryFn: ({ signal }) => client.scheduling.whatIf({ ...toChange(choice), picture_in_s: pictureInS }, signal),
  });
  return { ...toLoadable(query), isAsking: query.isFetching };
}

/** When something that is not submitted would start. */
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
