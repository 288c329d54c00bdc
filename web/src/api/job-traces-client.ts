// Requests about job traces (this cluster's history and uploaded ones) and about predictions made from them.

import { request, toQuery } from "../base/request.ts";
import { API, getJson, send } from "./ask.ts";
import type {
  JobTraceList,
  JobTraceRow,
  ModelCards,
  ReliabilityAnswer,
  SimulationAnswer,
  SimulationAsk,
  SimulationList,
  SimulatorOptions,
  TracePredictions,
  TracesDescription,
} from "./generated.ts";

export interface JobTracesClient {
  list(signal?: AbortSignal): Promise<JobTraceList>;
  /** `totalUnits`: the size of the machine if the file does not state it; null: as stated. */
  upload(name: string, file: Blob, totalUnits: number | null): Promise<JobTraceRow>;
  remove(trace: string): Promise<void>;
  /** One to four traces side by side; hours and weekdays in the given time zone. */
  describe(traces: readonly string[], timeZone: string, signal?: AbortSignal): Promise<TracesDescription>;
  /** Predictors of run times, compared on a trace. */
  predictions(trace: string, signal?: AbortSignal): Promise<TracePredictions>;
  models(signal?: AbortSignal): Promise<ModelCards>;
  reliability(signal?: AbortSignal): Promise<ReliabilityAnswer>;
  simulatorOptions(signal?: AbortSignal): Promise<SimulatorOptions>;
  /** Starts a simulation, or returns the existing one for the same request. */
  simulate(asked: SimulationAsk, signal?: AbortSignal): Promise<SimulationAnswer>;
  simulation(simulation: string, signal?: AbortSignal): Promise<SimulationAnswer>;
  /** Stops it; results so far are kept. */
  stopSimulation(simulation: string): Promise<SimulationAnswer>;
  /** Deletes a saved result. */
  removeSimulation(simulation: string): Promise<void>;
  /** Saved results. */
  simulations(signal?: AbortSignal): Promise<SimulationList>;
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
    predictions: (trace, signal) =>
      getJson<TracePredictions>(`/job-traces/${encodeURIComponent(trace)}/predictions`, signal),
    models: (signal) => getJson<ModelCards>("/scheduling/models", signal),
    reliability: (signal) => getJson<ReliabilityAnswer>("/scheduling/reliability", signal),
    simulatorOptions: (signal) => getJson<SimulatorOptions>("/simulations/options", signal),
    simulate: async (asked, signal) =>
      (await (await send("POST", "/simulations", asked, signal)).json()) as SimulationAnswer,
    simulation: (simulation, signal) =>
      getJson<SimulationAnswer>(`/simulations/${encodeURIComponent(simulation)}`, signal),
    stopSimulation: async (simulation) =>
      (await (await send("DELETE", `/simulations/${encodeURIComponent(simulation)}`)).json()) as SimulationAnswer,
    async removeSimulation(simulation) {
      await send("DELETE", `/simulations/${encodeURIComponent(simulation)}/result`);
    },
    simulations: (signal) => getJson<SimulationList>("/simulations", signal),
  };
}
