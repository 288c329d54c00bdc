// What may be asked about job traces — this cluster's history and uploaded ones — and about predictions made from them.

import { request, toQuery } from "../base/request.ts";
import { API, getJson, send } from "./ask.ts";
import type { JobTraceList, JobTraceRow, ModelCards, ReliabilityAnswer, TracesDescription } from "./generated.ts";

export interface JobTracesClient {
  list(signal?: AbortSignal): Promise<JobTraceList>;
  /** `totalUnits`: the machine's size where the file does not say it; null: as it says. */
  upload(name: string, file: Blob, totalUnits: number | null): Promise<JobTraceRow>;
  remove(trace: string): Promise<void>;
  /** One to four traces side by side, hours and weekdays of the zone. */
  describe(traces: readonly string[], timeZone: string, signal?: AbortSignal): Promise<TracesDescription>;
  models(signal?: AbortSignal): Promise<ModelCards>;
  reliability(signal?: AbortSignal): Promise<ReliabilityAnswer>;
}

export function createJobTracesClient(): JobTracesClient {
  return {
    list: (signal) => getJson<JobTraceList>("/job-traces", signal),
    async upload(name, file, totalUnits) {
      const path = `${API}/job-traces${toQuery({ name, total_units: totalUnits })}`;
      const headers = { "Content-Type": "application/octet-stream" };
      return (await (await request(path, { method: "POST", headers, body: file })).json()) as JobTraceRow;
    },
    async remove(trace) {
      await send("DELETE", `/job-traces/${encodeURIComponent(trace)}`);
    },
    describe([first = "cluster", ...others], timeZone, signal) {
      const query = toQuery({ compare: others.join(",") || null, timezone: timeZone });
      return getJson<TracesDescription>(`/job-traces/${encodeURIComponent(first)}/description${query}`, signal);
    },
    models: (signal) => getJson<ModelCards>("/scheduling/models", signal),
    reliability: (signal) => getJson<ReliabilityAnswer>("/scheduling/reliability", signal),
  };
}
