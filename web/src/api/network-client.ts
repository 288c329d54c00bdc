// The client that sends requests to a ClusterScape server over HTTP. Knows addresses and headers; caches nothing.

import { request, toQuery } from "../base/request.ts";
import { createAccessClient } from "./access-client.ts";
import { API, getJson, send } from "./ask.ts";
import type { Client } from "./client.ts";
import { decodeColumns } from "./columns.ts";
import { createDiagnosisClient } from "./diagnosis-client.ts";
import type {
  ClusterSummary,
  JobCard,
  NodeAnswer,
  NodeDetail,
  SavedView,
  SavedViews,
  SearchHits,
  Sources,
  Timeline,
  UsageReport,
  WasteAnswer,
  WorkloadDetail,
  WorkloadList,
} from "./generated.ts";
import { createJobTracesClient } from "./job-traces-client.ts";
import { listenToEvents } from "./live.ts";
import { createRulesClient } from "./rules-client.ts";
import { createRunsClient } from "./runs-client.ts";
import { createSchedulingClient } from "./scheduling-client.ts";
import { toSeriesLines } from "./series.ts";
import { toSnapshot } from "./snapshot.ts";
import { type Scales, toTick } from "./tick.ts";
import { createTracesClient } from "./traces-client.ts";
import { toUnitWaste } from "./unit-waste.ts";
import { createViolationsClient } from "./violations-client.ts";

/** `at`: the past minute to request; null: the present. */
export function createNetworkClient(at: number | null = null): Client {
  const moment = toQuery({ at });
  return {
    at: (other) => createNetworkClient(other),
    access: createAccessClient(),
    rules: createRulesClient(at),
    violations: createViolationsClient(),
    diagnosis: createDiagnosisClient(),
    traces: createTracesClient(),
    scheduling: createSchedulingClient(),
    jobTraces: createJobTracesClient(),
    runs: createRunsClient(),
    timeline: ({ startMs, endMs, points }, signal) =>
      getJson<Timeline>(`/timeline${toQuery({ start: startMs, end: endMs, points })}`, signal),
    waste: (hours, signal) => getJson<WasteAnswer>(`/waste${toQuery({ hours, at })}`, signal),
    cluster: (signal) => getJson<ClusterSummary>(`/cluster${moment}`, signal),
    nodes: (signal) => getJson<readonly NodeAnswer[]>(`/nodes${moment}`, signal),
    node: (node, signal) => getJson<NodeDetail>(`/nodes/${encodeURIComponent(node)}${moment}`, signal),
    workloads: ({ states, limit, offset = 0 }, signal) =>
      getJson<WorkloadList>(`/workloads${toQuery({ state: states, limit, offset, at })}`, signal),
    workload: (workload, signal) =>
      getJson<WorkloadDetail>(`/workloads/${encodeURIComponent(workload)}${moment}`, signal),
    job: (job, signal) => getJson<JobCard>(`/jobs/${encodeURIComponent(job)}`, signal),
    usageReport: ({ period, project, user }, signal) =>
      getJson<UsageReport>(
        `/usage/report${toQuery({ period: period || null, project: project || null, user: user || null })}`,
        signal,
      ),
    search: (text, limit, signal) => getJson<SearchHits>(`/search${toQuery({ q: text, limit })}`, signal),
    sources: (signal) => getJson<Sources>("/sources", signal),
    views: (signal) => getJson<SavedViews>("/views", signal),
    saveView: async (name, document) =>
      (await (await send("PUT", `/views/${encodeURIComponent(name)}`, document)).json()) as SavedView,
    async removeView(name) {
      await send("DELETE", `/views/${encodeURIComponent(name)}`);
    },
    async setStartView(name) {
      await send("PUT", "/start-view", { name });
    },

    async unitWaste(hours, signal) {
      return toUnitWaste((await getColumns(`/waste/units${toQuery({ hours })}`, signal)).columns);
    },
    async unitsFile(units, at) {
      return (await send("POST", `/units.parquet${toQuery({ at })}`, { units })).blob();
    },
    async snapshot(signal) {
      const { headers, columns } = await getColumns(`/snapshot${moment}`, signal);
      return toSnapshot(columns, readNumber(headers, "X-Inventory-Version") ?? 0);
    },
    async tick(metrics, signal) {
      const { headers, columns } = await getColumns(`/tick${toQuery({ metrics: metrics.join(","), at })}`, signal);
      return toTick(columns, JSON.parse(headers.get("X-Scales") ?? "{}") as Scales, {
        inventoryVersion: readNumber(headers, "X-Inventory-Version") ?? 0,
        tickVersion: readNumber(headers, "X-Tick-Version") ?? 0,
        sampledAt: readNumber(headers, "X-Sampled-At"),
      });
    },
    async series({ subject, metrics, startMs, endMs, points }, signal) {
      const query = { ...subject, metric: metrics, start: startMs, end: endMs, points };
      return toSeriesLines((await getColumns(`/series${toQuery(query)}`, signal)).columns);
    },
    listen: (listener) => listenToEvents(`${API}/live`, listener),
  };
}

async function getColumns(path: string, signal?: AbortSignal) {
  const response = await request(`${API}${path}`, { signal: signal ?? null });
  const columns = decodeColumns(new Uint8Array(await response.arrayBuffer()));
  return { headers: response.headers, columns };
}

function readNumber(headers: Headers, name: string): number | null {
  const text = headers.get(name);
  const value = text === null || text === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}
