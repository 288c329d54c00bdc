// Facts of one run and summaries of all compared runs. Pure.

import type { RunAnswer, RunHang, RunListener, RunRow } from "../../api/generated.ts";
import { isKnown, MISSING } from "../../base/format.ts";
import { formatDuration } from "../../base/time.ts";
import type { Fact } from "../../widgets/facts.tsx";
import { describeSharing } from "./groups.ts";
import { formatNumber, listQuantities, type RunQuantity } from "./quantities.ts";

export interface RunsSummary {
  readonly failed: number;
  readonly joules: number;
  /** Mean over the runs that shared a GPU; null: none did. */
  readonly slowdown: number | null;
}

export function summarizeRuns(rows: readonly RunRow[]): RunsSummary {
  const slowdowns = rows.flatMap(({ slowdown }) => (slowdown ? [slowdown.ratio] : []));
  return {
    failed: rows.filter(({ state }) => state !== "completed" && state !== "running").length,
    joules: rows.reduce((sum, { energy }) => sum + (energy?.joules ?? 0), 0),
    slowdown: slowdowns.length > 0 ? slowdowns.reduce((sum, ratio) => sum + ratio, 0) / slowdowns.length : null,
  };
}

/**
 * The run with the maximum or minimum of a quantity; null where fewer than two runs have it. Only completed runs count: a run
 * that was cancelled early would look fastest.
 */
export function findBestRun(
  rows: readonly RunRow[],
  key: string,
  isMaximum: boolean,
): { readonly row: RunRow; readonly quantity: RunQuantity } | null {
  const quantity = listQuantities(rows).find((candidate) => candidate.key === key);
  const measured = rows.filter((row) => row.state === "completed" && isKnown(quantity?.of(row)));
  if (!quantity || measured.length < 2) return null;
  const sign = isMaximum ? -1 : 1;
  const [row] = measured.toSorted((a, b) => sign * ((quantity.of(a) ?? 0) - (quantity.of(b) ?? 0)));
  return row ? { row, quantity } : null;
}

const WHEN = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/** `18 Nov, 09:12 · 1 h · mps`: what tells runs of the same name apart. */
export function describeRun({
  started_at,
  ended_at,
  ...sharing
}: Pick<RunRow, "started_at" | "ended_at" | "collocation" | "letter" | "device_type">): string {
  const parts = [
    started_at === null ? "not started" : WHEN.format(started_at),
    started_at === null || ended_at === null ? null : formatDuration((ended_at - started_at) / 1000),
    describeSharing(sharing)?.replace(/=.*/, "") ?? null,
  ];
  return parts.filter((part) => part !== null).join(" · ");
}

/** The unit of the work, appended to throughput and joules per work. */
export function unitAfter(key: string, { work }: Pick<RunRow, "work">): string {
  if (work === null) return "";
  if (key === "throughput") return ` ${work.unit}/s`;
  return key === "joules_per_work" ? ` per ${work.unit.replace(/s$/, "")}` : "";
}

export function formatSeconds(seconds: number | null): string {
  if (seconds === null) return MISSING;
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${formatNumber(seconds, null)} s`;
}

/** The recorded environment of a run. */
export function listEnvironment({
  environment,
  cwd,
  listens_to,
}: Pick<RunAnswer, "environment" | "cwd" | "listens_to">): readonly Fact[] {
  const toText = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
  const git = environment.git as Readonly<Record<string, unknown>> | null | undefined;
  const commit = toText(git?.commit)?.slice(0, 12);
  const packages = Object.keys((environment.packages as Readonly<Record<string, string>> | null | undefined) ?? {});
  return [
    { name: "Folder", value: cwd },
    { name: "Commit", value: commit ? `${commit}${git?.is_dirty ? ", uncommitted changes" : ""}` : null },
    { name: "Packages", value: packages.length > 0 ? String(packages.length) : null },
    { name: "Driver", value: findDriver(toText(environment.driver)) },
    { name: "Processor", value: toText(environment.cpu) },
    { name: "System", value: toText(environment.system)?.split(" ").slice(0, 3).join(" ") ?? null },
    { name: "Listeners", value: listens_to.join(", ") || null },
  ].filter(({ value }) => value !== null);
}

/** The driver version in the output of `nvidia-smi --query-gpu=name,uuid,driver_version,…`. */
function findDriver(table: string | null): string | null {
  const [heads = "", first = ""] = table?.split("\n") ?? [];
  const at = heads.split(",").findIndex((head) => head.trim() === "driver_version");
  return first.split(",")[at]?.trim() || null;
}

function describeListener([name, { state, message, missed }]: [string, RunListener]): readonly string[] {
  const reason = message ? `: ${message}` : "";
  if (state === "failed" || state === "unavailable") return [`Listener ${name} ${state}${reason}.`];
  return missed ? [`Listener ${name} missed ${missed} ${missed === 1 ? "sample" : "samples"}.`] : [];
}

type WithProblems = Pick<
  RunAnswer,
  "exceptions" | "hangs" | "listeners" | "not_finite" | "dropped" | "leftovers" | "left_out"
>;

function describeHang({ title, reason, place, ended_at }: RunHang): string {
  const where = place ? ` (${place})` : "";
  return `${ended_at ? "Went on since: " : ""}${title}${where}. ${reason ?? ""}`.trim();
}

/** All problems of a run, one line each. */
export function listProblems(answer: WithProblems): readonly string[] {
  const { exceptions, hangs, listeners, not_finite, dropped, leftovers, left_out } = answer;
  return [
    ...exceptions,
    ...hangs.map(describeHang),
    ...Object.entries(listeners).flatMap(describeListener),
    not_finite > 0
      ? `${not_finite} ${not_finite === 1 ? "value was not finite and is" : "values were not finite and are"} not shown.`
      : null,
    dropped > 0 ? `${dropped} ${dropped === 1 ? "value was" : "values were"} dropped.` : null,
    leftovers > 0
      ? `${leftovers} ${leftovers === 1 ? "process was" : "processes were"} still running after the run.`
      : null,
    ...Object.entries(left_out).map(([kind, count]) => `${count} ${kind} were dropped: over the limit of the server.`),
  ].filter((line) => line !== null);
}
