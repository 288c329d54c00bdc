// Hooks for violations, mutes, comments and alert channels, and for what users add to violations. Violations are those
// up to the minute that the screen shows; comments, mutes and channels are those of the present.

import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import type {
  AlertState,
  CommentAnswer,
  MuteAnswer,
  MuteRequest,
  NewComment,
  RuleTimeline,
  ViolationList,
} from "../api/generated.ts";
import type { ViolationTime } from "../api/violations-client.ts";
import { HOUR_MS } from "../base/durations.ts";
import type { Loadable } from "../base/loadable.ts";
import type { Moment } from "../state/time.ts";
import { useMoment } from "../state/use-moment.ts";
import { type RulesPage, SPAN_HOURS, type Span } from "../state/violations.ts";
import { useServices } from "./services.ts";
import { useVersionedQuery } from "./versioned-query.ts";

/** Open violations grow every minute. */
const REFRESH_MS = 60_000;
const ALERTS_EVERY_MS = 15_000;
const STEPS = 120;

export function useViolations({ span, range }: Pick<RulesPage, "span" | "range">): Loadable<ViolationList> {
  const at = useMoment();
  const time = toTime(range, SPAN_HOURS[span], at);
  return useVersionedQuery({
    key: ["violations", "list", time],
    follows: "rule-book",
    keepsLast: true,
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.violations.list(time, signal),
  });
}

function toTime(range: RulesPage["range"], hours: number, at: Moment): ViolationTime {
  if (range) return { startMs: range.fromMs, endMs: range.toMs };
  return at === null ? { hours } : { startMs: at - hours * HOUR_MS, endMs: at };
}

export function useViolationTimeline(span: Span): Loadable<RuleTimeline> {
  const at = useMoment();
  return useVersionedQuery({
    key: ["violations", "timeline", span, at],
    follows: "rule-book",
    keepsLast: true,
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.violations.timeline(SPAN_HOURS[span], STEPS, at, signal),
  });
}

export function useMutes(): Loadable<readonly MuteAnswer[]> {
  return useVersionedQuery({
    key: ["mutes"],
    follows: "rule-book",
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.violations.mutes(signal),
  });
}

export function useComments(workload: string): Loadable<readonly CommentAnswer[]> {
  return useVersionedQuery({
    key: ["comments", workload],
    follows: "rule-book",
    ask: (client, signal) => client.violations.comments(workload, signal),
  });
}

export function useAlerts(): Loadable<AlertState> {
  return useVersionedQuery({
    key: ["alerts"],
    follows: "nothing",
    everyMs: ALERTS_EVERY_MS,
    ask: (client, signal) => client.violations.alerts(signal),
  });
}

export interface NoteActions {
  mute(wanted: MuteRequest): Promise<void>;
  unmute(key: string): Promise<void>;
  comment(wanted: NewComment): Promise<void>;
  removeComment(key: string): Promise<void>;
}

export function useNoteActions(): NoteActions {
  const { client } = useServices();
  const queries = useQueryClient();
  return useMemo(() => {
    const { violations } = client;
    const refresh = async (...keys: readonly string[]) => {
      await Promise.all(keys.map((key) => queries.invalidateQueries({ queryKey: [key] })));
    };
    const refreshMutes = () => refresh("mutes", "violations", "workload");
    return {
      mute: async (wanted) => {
        await violations.mute(wanted);
        await refreshMutes();
      },
      unmute: async (key) => {
        await violations.unmute(key);
        await refreshMutes();
      },
      comment: async (wanted) => {
        await violations.comment(wanted);
        await refresh("comments");
      },
      removeComment: async (key) => {
        await violations.removeComment(key);
        await refresh("comments");
      },
    };
  }, [client, queries]);
}
