// The usage of a period, fetched again every five minutes: accounting comes late, and running jobs go on.

import type { UsageReport } from "../api/generated.ts";
import type { Loadable } from "../base/loadable.ts";
import type { UsagePage } from "../state/usage.ts";
import { useVersionedQuery } from "./versioned-query.ts";

const REFRESH_MS = 300_000;

export function useUsageReport({ period, project, user }: UsagePage): Loadable<UsageReport> {
  return useVersionedQuery({
    key: ["usage", period, project, user],
    follows: "nothing",
    everyMs: REFRESH_MS,
    keepsLast: true,
    ask: (client, signal) => client.usageReport({ period, project, user }, signal),
  });
}
