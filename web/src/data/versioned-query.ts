// Queries that follow the server's versions. Level-triggered: if nothing is in flight and the cached response was
// fetched at another version than the server's, refetch once. So a burst of changes costs one request, a reconnect
// catches up, and requests never pile up. A hidden page sends nothing. A past minute is a version, too: while the
// reader drags through time, only the newest minute is requested, and the last picture stays until it arrives.

import { keepPreviousData, type UseQueryResult, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useSyncExternalStore } from "react";
import type { Client, LiveVersion } from "../api/client.ts";
import type { Loadable } from "../base/loadable.ts";
import { toProblem } from "../base/problem.ts";
import type { Moment } from "../state/time.ts";
import { useMoment } from "../state/use-moment.ts";
import { useLive, useServices } from "./services.ts";

/**
 * Which changes on the server make a response stale. While the screen shows a past minute, all but "nothing" and "rule-
 * book" are requested for that minute: the definitions of rules are those of the present.
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
  /** `client` requests data of minute `at`; `held` is the cached response. */
  ask(client: Client, signal: AbortSignal, held: T | undefined, at: Moment): Promise<T>;
  readonly enabled?: boolean;
  /** Whether the previous response stays visible until a new one arrives. */
  readonly keepsLast?: boolean;
  /** The polling interval, for data without a version; paused on a hidden page. */
  readonly everyMs?: number;
}

export function useVersionedQuery<T>(question: VersionedQuery<T>): Loadable<T> {
  const { key, follows, ask, enabled = true, keepsLast = false, everyMs } = question;
  const { client, live, clock } = useServices();
  const cache = useQueryClient();
  const { followed, pausedAt, receivedCount } = useLive();
  const named = useMoment();
  // The future cannot be requested.
  const moment = named !== null && named > clock.now() ? null : named;
  const momentRef = useRef(moment);
  useEffect(() => {
    momentRef.current = moment;
  }, [moment]);
  const version = stampOf(followed, follows, moment);
  const isStill = moment !== null || pausedAt !== null;
  const query = useQuery({
    queryKey: key,
    enabled,
    ...(keepsLast ? { placeholderData: keepPreviousData } : {}),
    ...(everyMs === undefined || isStill ? {} : { refetchInterval: everyMs }),
    queryFn: async ({ signal }): Promise<Stamped<T>> => {
      const at = TIMELESS.includes(follows) ? null : momentRef.current;
      const stamp = stampOf(live.read().followed, follows, at);
      const previous = cache.getQueryData<Stamped<T>>(key)?.value;
      return { version: stamp, value: await ask(client.at(at), signal, previous, at) };
    },
  });
  useFollow(query, version, receivedCount, enabled);
  return toLoadable(query);
}

function useFollow(
  query: UseQueryResult<Stamped<unknown>>,
  version: string,
  receivedCount: number,
  enabled: boolean,
): void {
  const isVisible = useSyncExternalStore(subscribeVisibility, () => document.visibilityState === "visible");
  const { data, isFetching, isError, refetch } = query;
  const failedAt = useRef<string | null>(null);
  useEffect(() => {
    const now = `${receivedCount} ${version}`;
    if (!isError) failedAt.current = null;
    else if (failedAt.current === null) failedAt.current = now;
    if (!enabled || !isVisible || isFetching) return;
    const isOld = data !== undefined && data.version !== version;
    const isWorthRetrying = isError && failedAt.current !== now;
    if (isError ? isWorthRetrying : isOld) {
      failedAt.current = null;
      // Several components may use the same query: the first one refetches, the others join.
      void refetch({ cancelRefetch: false });
    }
  }, [data, version, receivedCount, enabled, isVisible, isFetching, isError, refetch]);
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
