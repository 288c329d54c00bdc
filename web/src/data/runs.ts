// Hooks for tracked runs. The live stream has no version for them, so open runs are polled.

import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import type {
  HangAnswer,
  HangList,
  RunAnswer,
  RunMetrics,
  RunTree,
  SavedViews,
  ViewDocument,
} from "../api/generated.ts";
import type { RunBandLine, RunBandsQuery, RunLine, RunLinesQuery } from "../api/runs-client.ts";
import type { Loadable } from "../base/loadable.ts";
import { useServices } from "./services.ts";
import { useVersionedQuery } from "./versioned-query.ts";

const REFRESH_MS = 10_000;
const INSIGHTS_KEY = "insights";
const RUN_KEYS = ["run-tree", "run-metrics", "run-lines", "run-bands"];

export function useRunTree(): Loadable<RunTree> {
  return useVersionedQuery({
    key: ["run-tree"],
    follows: "nothing",
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.runs.tree(signal),
  });
}

export function useRun(run: string): Loadable<RunAnswer> {
  return useVersionedQuery({
    key: ["run", run],
    follows: "nothing",
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.runs.run(run, signal),
  });
}

/** Who hangs in the job that a run is part of; not requested without a run. */
export function useHang(run: string | null): Loadable<HangAnswer> {
  return useVersionedQuery({
    key: ["hang", run],
    follows: "nothing",
    enabled: run !== null,
    keepsLast: true,
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.runs.hang(run ?? "", signal),
  });
}

/** Runs of a workload that stopped making steps, newest first. */
export function useHangs(workload: string | null): Loadable<HangList> {
  return useVersionedQuery({
    key: ["hangs", workload],
    follows: "nothing",
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.runs.hangs(workload, signal),
  });
}

/** Deletes a run, then refetches everything that it was part of. */
export function useRunRemoval(): (run: string) => Promise<void> {
  const { client } = useServices();
  const cache = useQueryClient();
  return async (run) => {
    await client.runs.removeRun(run);
    await Promise.all(RUN_KEYS.map((key) => cache.invalidateQueries({ queryKey: [key] })));
  };
}

export function useRunMetrics(runs: readonly string[]): Loadable<RunMetrics> {
  return useVersionedQuery({
    key: ["run-metrics", runs],
    follows: "nothing",
    enabled: runs.length > 0,
    keepsLast: true,
    ask: (client, signal) => client.runs.metrics(runs, signal),
  });
}

/** `isLive`: one of the runs is still running. */
export function useRunLines(query: RunLinesQuery, isLive: boolean): Loadable<readonly RunLine[]> {
  return useVersionedQuery({
    key: ["run-lines", query],
    follows: "nothing",
    enabled: query.runs.length > 0 && query.metrics.length > 0,
    keepsLast: true,
    ...(isLive ? { everyMs: REFRESH_MS } : {}),
    ask: (client, signal) => client.runs.lines(query, signal),
  });
}

export function useRunBands(query: RunBandsQuery, isLive: boolean): Loadable<readonly RunBandLine[]> {
  return useVersionedQuery({
    key: ["run-bands", query],
    follows: "nothing",
    enabled: query.groups.length > 0 && query.metrics.length > 0,
    keepsLast: true,
    ...(isLive ? { everyMs: REFRESH_MS } : {}),
    ask: (client, signal) => client.runs.bands(query, signal),
  });
}

export function useInsights(): Loadable<SavedViews> {
  return useVersionedQuery({
    key: [INSIGHTS_KEY],
    follows: "nothing",
    ask: (client, signal) => client.runs.insights(signal),
  });
}

export interface InsightActions {
  save(name: string, document: ViewDocument): Promise<void>;
  remove(name: string): Promise<void>;
}

export function useInsightActions(): InsightActions {
  const { client } = useServices();
  const cache = useQueryClient();
  const renew = useCallback(() => cache.invalidateQueries({ queryKey: [INSIGHTS_KEY] }), [cache]);
  return {
    async save(name, document) {
      await client.runs.saveInsight(name, document);
      await renew();
    },
    async remove(name) {
      await client.runs.removeInsight(name);
      await renew();
    },
  };
}
