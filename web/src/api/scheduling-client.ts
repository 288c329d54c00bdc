// What may be asked about the live queue, and how a server is asked.

import { toQuery } from "../base/request.ts";
import { getJson, send } from "./ask.ts";
import type { QueueAnswer, QueueWhatIf, WaitAnswer, WaitingStory, WhatIfAnswer } from "./generated.ts";

export interface WaitQuestion {
  readonly gpus: number;
  readonly hours: number;
  /** Null: the one that starts first. */
  readonly partition: string | null;
}

export interface SchedulingClient {
  queue(signal?: AbortSignal): Promise<QueueAnswer>;
  /** Why one workload waits, or waited. */
  story(workload: string, signal?: AbortSignal): Promise<WaitingStory>;
  /** Takes seconds. */
  whatIf(change: QueueWhatIf, signal?: AbortSignal): Promise<WhatIfAnswer>;
  wait(question: WaitQuestion, signal?: AbortSignal): Promise<WaitAnswer>;
}

export function createSchedulingClient(): SchedulingClient {
  return {
    queue: (signal) => getJson<QueueAnswer>("/scheduling/queue", signal),
    story: (workload, signal) => getJson<WaitingStory>(`/scheduling/queue/${encodeURIComponent(workload)}`, signal),
    whatIf: async (change, signal) =>
      (await (await send("POST", "/scheduling/whatif", change, signal)).json()) as WhatIfAnswer,
    wait: ({ gpus, hours, partition }, signal) =>
      getJson<WaitAnswer>(`/scheduling/wait${toQuery({ gpus, hours, partition })}`, signal),
  };
}
