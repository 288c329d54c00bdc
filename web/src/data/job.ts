// The card of a job, fetched again every minute; of an ended job it stays as it is, but late samples may still come.

import type { JobCard } from "../api/generated.ts";
import type { Loadable } from "../base/loadable.ts";
import { useVersionedQuery } from "./versioned-query.ts";

const REFRESH_MS = 60_000;

export function useJobCard(job: string): Loadable<JobCard> {
  return useVersionedQuery({
    key: ["job", job],
    follows: "nothing",
    everyMs: REFRESH_MS,
    ask: (client, signal) => client.job(job, signal),
  });
}
