// The page of a job in a link: `/job/CLUSTER/ID`, with the id as Slurm's commands print it.

import type { Screen } from "./screen.ts";

export interface JobRef {
  readonly cluster: string;
  readonly job: string;
}

/** Undefined: the path is not one of a job; null: it names none. */
export function parseJobPath(pathname: string): JobRef | null | undefined {
  const [view, cluster, job, ...rest] = pathname.split("/").filter((part) => part !== "");
  if (view !== "job" || rest.length > 0) return undefined;
  if (cluster === undefined) return null;
  if (job === undefined) return undefined;
  try {
    return { cluster: decodeURIComponent(cluster), job: decodeURIComponent(job) };
  } catch {
    return undefined;
  }
}

export function writeJobPath(job: JobRef | null): string {
  return job === null ? "/job" : `/job/${encodeURIComponent(job.cluster)}/${encodeURIComponent(job.job)}`;
}

export const showJob =
  (job: JobRef) =>
  (screen: Screen): Screen => ({ ...screen, view: "job", job });
