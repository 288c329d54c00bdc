// Requests about violations, mutes, comments and alerts.

import { toQuery } from "../base/request.ts";
import { getJson, send } from "./ask.ts";
import type {
  AlertState,
  CommentAnswer,
  MuteAnswer,
  MuteRequest,
  NewComment,
  RuleTimeline,
  ViolationList,
} from "./generated.ts";

/** The last hours, or an interval of the past. */
export type ViolationTime = { readonly hours: number } | { readonly startMs: number; readonly endMs: number };

export interface ViolationsClient {
  list(time: ViolationTime, signal?: AbortSignal): Promise<ViolationList>;
  /** `endMs`: the end of the interval; null: now. */
  timeline(hours: number, steps: number, endMs: number | null, signal?: AbortSignal): Promise<RuleTimeline>;
  mutes(signal?: AbortSignal): Promise<readonly MuteAnswer[]>;
  mute(wanted: MuteRequest): Promise<MuteAnswer>;
  unmute(key: string): Promise<void>;
  comments(workload: string, signal?: AbortSignal): Promise<readonly CommentAnswer[]>;
  comment(wanted: NewComment): Promise<CommentAnswer>;
  removeComment(key: string): Promise<void>;
  alerts(signal?: AbortSignal): Promise<AlertState>;
}

export function createViolationsClient(): ViolationsClient {
  return {
    list: (time, signal) => {
      const query = "hours" in time ? { hours: time.hours } : { start: time.startMs, end: time.endMs };
      return getJson<ViolationList>(`/violations${toQuery(query)}`, signal);
    },
    timeline: (hours, steps, endMs, signal) =>
      getJson<RuleTimeline>(`/violations/timeline${toQuery({ hours, steps, end: endMs })}`, signal),
    mutes: (signal) => getJson<readonly MuteAnswer[]>("/mutes", signal),
    mute: async (wanted) => (await (await send("POST", "/mutes", wanted)).json()) as MuteAnswer,
    async unmute(key) {
      await send("DELETE", `/mutes/${encodeURIComponent(key)}`);
    },
    comments: (workload, signal) => getJson<readonly CommentAnswer[]>(`/comments${toQuery({ workload })}`, signal),
    comment: async (wanted) => (await (await send("POST", "/comments", wanted)).json()) as CommentAnswer,
    async removeComment(key) {
      await send("DELETE", `/comments/${encodeURIComponent(key)}`);
    },
    alerts: (signal) => getJson<AlertState>("/alerts", signal),
  };
}
