// What is said of one run and of all that are compared, in words and numbers. Pure: draws nothing.

import type { RunAnswer, RunListener, RunRow } from "../../api/generated.ts";
import { isKnown, MISSING } from "../../base/format.ts";
import type { Fact } from "../../widgets/facts.tsx";
import { listQuantities, type RunQuantity, sayNumber } from "./quantities.ts";

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

/** The run with the most, or the least, of a quantity; null where fewer than two runs have it. */
export function findBest(
  rows: readonly RunRow[],
  key: string,
  isMost: boolean,
): { readonly row: RunRow; readonly quantity: RunQuantity } | null {
  const quantity = listQuantities(rows).find((candidate) => candidate.key === key);
  const measured = rows.filter((row) => isKnown(quantity?.of(row)));
  if (!quantity || measured.length < 2) return null;
  const sign = isMost ? -1 : 1;
  const [row] = measured.toSorted((a, b) => sign * ((quantity.of(a) ?? 0) - (quantity.of(b) ?? 0)));
  return row ? { row, quantity } : null;
}

/** The unit of the work, where the number alone does not say it. */
export function unitAfter(key: string, { work }: Pick<RunRow, "work">): string {
  if (work === null) return "";
  if (key === "throughput") return ` ${work.unit}/s`;
  return key === "joules_per_work" ? ` a ${work.unit.replace(/s$/, "")}` : "";
}

export function saySeconds(seconds: number | null): string {
  if (seconds === null) return MISSING;
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${sayNumber(seconds, null)} s`;
}

/** What one needs to run it again, as far as it was recorded. */
export function listEnvironment({
  environment,
  cwd,
  listens_to,
}: Pick<RunAnswer, "environment" | "cwd" | "listens_to">): readonly Fact[] {
  const say = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
  const git = environment.git as Readonly<Record<string, unknown>> | null | undefined;
  const commit = say(git?.commit)?.slice(0, 12);
  const packages = Object.keys((environment.packages as Readonly<Record<string, string>> | null | undefined) ?? {});
  return [
    { name: "folder", value: cwd },
    { name: "commit", value: commit ? `${commit}${git?.is_dirty ? " with changes" : ""}` : null },
    { name: "packages", value: packages.length > 0 ? String(packages.length) : null },
    { name: "driver", value: findDriver(say(environment.driver)) },
    { name: "processor", value: say(environment.cpu) },
    { name: "system", value: say(environment.system)?.split(" ").slice(0, 3).join(" ") ?? null },
    { name: "listeners", value: listens_to.join(", ") || null },
  ].filter(({ value }) => value !== null);
}

/** The version, from the table that `nvidia-smi --query-gpu=name,uuid,driver_version,…` gave. */
function findDriver(table: string | null): string | null {
  const [heads = "", first = ""] = table?.split("\n") ?? [];
  const at = heads.split(",").findIndex((head) => head.trim() === "driver_version");
  return first.split(",")[at]?.trim() || null;
}

function sayListener([name, { state, message, missed }]: [string, RunListener]): readonly string[] {
  const why = message ? `: ${message}` : "";
  if (state === "failed" || state === "unavailable") return [`Listener ${name} ${state}${why}.`];
  return missed ? [`Listener ${name} missed ${missed} of its ticks.`] : [];
}

type WithTroubles = Pick<RunAnswer, "exceptions" | "listeners" | "not_finite" | "dropped" | "leftovers" | "left_out">;

/** All that went wrong, a line each; empty where nothing did. */
export function listTroubles(answer: WithTroubles): readonly string[] {
  const { exceptions, listeners, not_finite, dropped, leftovers, left_out } = answer;
  return [
    ...exceptions,
    ...Object.entries(listeners).flatMap(sayListener),
    not_finite > 0 ? `${not_finite} values were not finite and are not shown.` : null,
    dropped > 0 ? `${dropped} values could not be kept.` : null,
    leftovers > 0 ? `${leftovers} processes outlived the run.` : null,
    ...Object.entries(left_out).map(([what, count]) => `${count} ${what} were left out: more than the server keeps.`),
  ].filter((line) => line !== null);
}
