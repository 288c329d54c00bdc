// Words and numbers of a job's card, with the roundings that users of jobstats know.

import type { JobCard, JobCardAdvice, JobCurve, JobShare } from "../../api/generated.ts";
import { DAY_S, HOUR_S, MINUTE_S } from "../../base/durations.ts";
import { formatHours, formatPlural, formatQuantity, isKnown } from "../../base/format.ts";

/** `00:33:49`, `4-20:40:02`, as Slurm writes times; fractions are truncated. */
export function formatClock(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const days = Math.floor(whole / DAY_S);
  const parts = [Math.floor((whole % DAY_S) / HOUR_S), Math.floor((whole % HOUR_S) / MINUTE_S), whole % MINUTE_S];
  const clock = parts.map((part) => String(part).padStart(2, "0")).join(":");
  return days > 0 ? `${days}-${clock}` : clock;
}

const BINARY = ["B", "KB", "MB", "GB", "TB", "PB"] as const;

/** Powers of 1024 with one decimal, named as jobstats names them: `5.2GB`; whole gigabytes of a limit without. */
export function formatSize(bytes: number | null, isLimit = false): string {
  if (!isKnown(bytes)) return "unknown";
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < BINARY.length - 1) {
    size /= 1024;
    unit += 1;
  }
  const text = `${size.toFixed(1)}${BINARY[unit]}`;
  return isLimit ? text.replace(".0GB", "GB") : text;
}

/** One decimal, none if the number is whole before rounding. */
export function formatPercent(ratio: number | null): string {
  if (!isKnown(ratio)) return "unknown";
  const percent = Number((100 * ratio).toFixed(6));
  return Number.isInteger(percent) ? `${percent}%` : `${percent.toFixed(1)}%`;
}

const PROBLEMS = {
  missing: "Samples are missing",
  above_all: "More than 100% was measured",
  nothing: "Nothing was allocated",
  mig: "MIG instances do not report it",
} as const;

export function describeProblem({ problem }: JobShare): string | null {
  return problem === null ? null : PROBLEMS[problem];
}

export interface ShownShare {
  readonly name: string;
  readonly share: JobShare;
  /** Whether a low share is a waste: the cores of a job with GPUs are not. */
  readonly isJudged: boolean;
  readonly used: string | null;
}

export function listShares(card: JobCard): readonly ShownShare[] {
  const hasGpus = card.gpus > 0;
  const shares: (ShownShare | null)[] = [
    { name: "CPU utilization", share: card.cpu, isJudged: !hasGpus, used: usedOf(card.cpu, formatClock) },
    { name: "CPU memory", share: card.cpu_memory, isJudged: false, used: usedOf(card.cpu_memory, formatSize) },
    card.gpu && { name: "GPU utilization", share: card.gpu, isJudged: true, used: null },
    card.gpu_memory && {
      name: "GPU memory",
      share: card.gpu_memory,
      isJudged: false,
      used: usedOf(card.gpu_memory, formatSize),
    },
  ];
  return shares.filter((shown) => shown !== null);
}

function usedOf({ used, total }: JobShare, format: (value: number) => string): string | null {
  return isKnown(used) && isKnown(total) ? `${format(used)} of ${format(total)}` : null;
}

const LOW_PERCENT = { "CPU utilization": 65, "GPU utilization": 15 } as const;

export function isLow({ name, share, isJudged }: ShownShare): boolean {
  const limit = LOW_PERCENT[name as keyof typeof LOW_PERCENT] ?? 0;
  return isJudged && isKnown(share.percent) && share.percent < limit;
}

export function describePeak(curve: JobCurve): string {
  const most = Math.max(...curve.values.filter(isKnown));
  switch (curve.unit) {
    case "count":
      return `at most ${most.toFixed(1)}`;
    case "bytes":
      return `at most ${formatSize(most)}`;
    case "ratio":
      return `at most ${Math.round(100 * most)}%`;
    default:
      return `at most ${formatQuantity(most, curve.unit)}`;
  }
}

const STATES: Readonly<Record<string, string>> = { node_failed: "NODE_FAIL" };

export function describeState(state: string): string {
  return STATES[state] ?? state.toUpperCase();
}

const SAVED = { gpu_hours: "GPU-hours", core_hours: "core-hours", gib_hours: "GB-hours of memory" } as const;

/** What a piece of advice would have saved, how much sooner the job would have started, and what it rests on. */
export function describeSaving({ saved, saved_unit, sooner_s, basis }: JobCardAdvice): readonly string[] {
  const unit = saved_unit === null || saved_unit === "hours" ? null : SAVED[saved_unit];
  return [
    unit !== null && isKnown(saved) ? `saves ${formatHours(saved)} ${unit}` : null,
    sooner_s === null ? null : sooner_s > 0 ? `would have started ${formatClock(sooner_s)} sooner` : "same start",
    basis > 1 ? `from ${formatPlural(basis, "job")}` : null,
  ].filter((fact) => fact !== null);
}
