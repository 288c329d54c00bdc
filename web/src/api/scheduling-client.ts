// Requests about the live queue.

import { toQuery } from "../base/request.ts";
import { getJson, send } from "./ask.ts";
import type { QueueAnswer, QueueWhatIf, WaitAnswer, WaitingStory, WhatIfProgress } from "./generated.ts";

export interface WaitQuestion {
  readonly gpus: number;
  readonly hours: number;
  /** Null: the partition in which it starts first. */
  readonly partition: string | null;
}

export interface SchedulingClient {
  queue(signal?: AbortSignal): Promise<QueueAnswer>;
  /** Why one workload waits, or waited. */
  story(workload: string, signal?: AbortSignal): Promise<WaitingStory>;
  /** Starts a simulation, which takes seconds. */
  startWhatIf(change: QueueWhatIf, signal?: AbortSignal): Promise<WhatIfProgress>;
  whatIf(run: string, signal?: AbortSignal): Promise<WhatIfProgress>;
  stopWhatIf(run: string): Promise<WhatIfProgress>;
  wait(question: WaitQuestion, signal?: AbortSignal): Promise<WaitAnswer>;
}

export function createSchedulingClient(): SchedulingClient {
  return {
    queue: (signal) => getJson<QueueAnswer>("/scheduling/queue", signal),
    story: (workload, signal) => getJson<WaitingStory>(`/scheduling/queue/${encodeURIComponent(workload)}`, signal),
    startWhatIf: async (change, signal) =>
      (await (await send("POST", "/scheduling/whatif/runs", change, signal)).json()) as WhatIfProgress,
    whatIf: (run, signal) => getJson<WhatIfProgress>(`/scheduling/whatif/runs/${run}`, signal),
    stopWhatIf: async (run) =>
      (await (await send("DELETE", `/scheduling/whatif/runs/${run}`)).json()) as WhatIfProgress,
    wait: ({ gpus, hours, partition }, signal) =>
      getJson<WaitAnswer>(`/scheduling/wait${toQuery({ gpus, hours, partition })}`, signal),
  };
}
