// Queries that follow the server's versions. Level-triggered: whenever nothing is on its way and what we hold was asked
// for at another version than the server's, ask once more. So a burst of changes costs one request, a reconnect catches
// up by itself, and requests never pile up. A hidden page asks nothing until it is looked at. A past minute is a version,
// too: while the reader drags through time only the newest one is asked for, and the last picture stays until it comes.

import { keepPreviousData, type UseQueryResult, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useSyncExternalStore } from "react";
import type { Client, LiveVersion } from "../api/client.ts";
import type { Loadable } from "../base/loadable.ts";
import { toProblem } from "../base/problem.ts";
import type { Moment } from "../state/time.ts";
import { useMoment } from "../state/use-moment.ts";
import { useLive, useServices } from "./services.ts";

/**
 * Which changes on the server make an answer old. All but "nothing" and "rule-book" are answers of the past while the
 * screen is: what the rules are is a matter of the present, what they said is not.
 */
export type Follows = "inventory" | "tick" | "both" | "rules" | "rule-book" | "moment" | "nothing";

const TIMELESS: readonly Follows[] = ["nothing", "rule-book"];

interface Stamped<T> {
  readonly version: string;
  readonly value: T;
}

export interface VersionedQuery<T> {
  readonly key: readonly unknown[];
  readonly follows: Follows;
  /** `client` answers as of `at`; `held` is the answer it will replace. */
  ask(client: Client, signal: AbortSignal, held: T | undefined, at: Moment): Promise<T>;
  readonly enabled?: boolean;
  /** Whether the answer to the last question stays in sight until that to a new one comes. */
  readonly keepsLast?: boolean;
  /** How often to ask again by the clock, for what no version tells of; never on a hidden page. */
  readonly everyMs?: number;
}

export function useVersionedQuery<T>(question: VersionedQuery<T>): Loadable<T> {
  const { key, follows, ask, enabled = true, keepsLast = false, everyMs } = question;
  const { client, live, clock } = useServices();
  const cache = useQueryClient();
  const { followed, pausedAt, heard } = useLive();
  const named = useMoment();
  // Nobody can be asked about the future.
  const moment = named !== null && named > clock.now() ? null : named;
  const asked = useRef(moment);
  useEffect(() => {
    asked.current = moment;
  }, [moment]);
  const wanted = stampOf(followed, follows, moment);
  const isStill = moment !== null || pausedAt !== null;
  const query = useQuery({
    queryKey: key,
    enabled,
    ...(keepsLast ? { placeholderData: keepPreviousData } : {}),
    ...(everyMs === undefined || isStill ? {} : { refetchInterval: everyMs }),
    queryFn: async ({ signal }): Promise<Stamped<T>> => {
      const at = TIMELESS.includes(follows) ? null : asked.current;
      const stamp = stampOf(live.read().followed, follows, at);
      const held = cache.getQueryData<Stamped<T>>(key)?.value;
      return { version: stamp, value: await ask(client.at(at), signal, held, at) };
    },
  });
  useFollow(query, wanted, heard, enabled);
  return toLoadable(query);
}

function useFollow(query: UseQueryResult<Stamped<unknown>>, wanted: string, heard: number, enabled: boolean): void {
  const isVisible = useSyncExternalStore(subscribeVisibility, () => document.visibilityState === "visible");
  const { data, isFetching, isError, refetch } = query;
  const failedAt = useRef<string | null>(null);
  useEffect(() => {
    const now = `${heard} ${wanted}`;
    if (!isError) failedAt.current = null;
    else if (failedAt.current === null) failedAt.current = now;
    if (!enabled || !isVisible || isFetching) return;
    const isOld = data !== undefined && data.version !== wanted;
    const isWorthRetrying = isError && failedAt.current !== now;
    if (isError ? isWorthRetrying : isOld) {
      failedAt.current = null;
      // Several components may hold the same query: whoever comes first asks, the others join.
      void refetch({ cancelRefetch: false });
    }
  }, [data, wanted, heard, enabled, isVisible, isFetching, isError, refetch]);
}

function stampOf(version: LiveVersion | null, follows: Follows, at: Moment): string {
  if (follows === "nothing") return "";
  if (follows === "rule-book") return version === null ? "" : `r${version.rules_version}`;
  if (at !== null) return `p${at}`;
  if (version === null || follows === "moment") return "";
  if (follows === "inventory") return `i${version.inventory_version}`;
  if (follows === "rules") return `r${version.rules_version}`;
  if (follows === "tick") return `t${version.tick_version}`;
  return `i${version.inventory_version}t${version.tick_version}`;
}

function toLoadable<T>(query: UseQueryResult<Stamped<T>>): Loadable<T> {
  return {
    value: query.data?.value,
    problem: query.error ? toProblem(query.error) : null,
    receivedAt: query.dataUpdatedAt,
    retry: () => void query.refetch({ cancelRefetch: false }),
  };
}

function subscribeVisibility(listener: () => void): () => void {
  document.addEventListener("visibilitychange", listener);
  return () => document.removeEventListener("visibilitychange", listener);
}
