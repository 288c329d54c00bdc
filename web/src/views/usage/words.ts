// What the usage page calls things, and how it writes times and money.

import type { UsageAnswer, UsageFigures, UsageGroup } from "../../api/generated.ts";
import { DAY_MS } from "../../base/durations.ts";
import { formatRatio, isKnown, MISSING } from "../../base/format.ts";
import type { UsagePart } from "../../state/usage.ts";

export const PART_WORDS: Record<UsagePart, string> = {
  project: "Project",
  user: "User",
  partition: "Partition",
  gpu_model: "GPU model",
  job_size: "Job size",
  qos: "QOS",
  end_state: "End state",
};

/** What held GPUs did, in the order in which it is drawn. */
export const USES = [
  { key: "used_gpu_hours", title: "used", color: "light-dark(#14827a, #4fd1c5)" },
  { key: "stalled_gpu_hours", title: "stalled", color: "light-dark(#7e6a07, #facb39)" },
  { key: "execution_idle_gpu_hours", title: "execution-idle", color: "light-dark(#b46a00, #ffb454)" },
  { key: "idle_gpu_hours", title: "idle", color: "light-dark(#a33a1f, #ff9270)" },
  { key: "unknown_gpu_hours", title: "not measured", color: "var(--track)" },
] as const satisfies readonly { key: keyof UsageFigures; title: string; color: string }[];

export function nameOf(group: UsageGroup, part: UsagePart): string {
  const name = group[part];
  if (name === null) return part === "gpu_model" ? "none or unknown" : "unknown";
  if (part === "job_size") return name === "0" ? "no GPU" : name === "1" ? "1 GPU" : `${name.replace("-", "–")} GPUs`;
  return part === "end_state" ? name.replaceAll("_", " ") : name;
}

const SIZES = ["0", "1", "2-4", "5-8", "9-16", "17-32", "33-64", "65-128", "129-256", "257-512", "513+"];

/** Job sizes by size, all others by their GPU-hours as they come. */
export function orderGroups(answer: UsageAnswer): readonly UsageGroup[] {
  if (answer.by[0] !== "job_size") return answer.groups;
  const place = ({ job_size: size }: UsageGroup) => SIZES.indexOf(size ?? "");
  return answer.groups.toSorted((a, b) => place(a) - place(b));
}

/** Of what was measured; null: nothing was. */
export function idleRatio(figures: UsageFigures): number | null {
  const measured = figures.gpu_hours - figures.unknown_gpu_hours;
  return measured > 1e-6 ? (figures.idle_gpu_hours + figures.execution_idle_gpu_hours) / measured : null;
}

export function formatMoney(value: number | null | undefined, currency: string | null): string {
  if (!isKnown(value) || currency === null) return MISSING;
  const amount = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  return `${amount.format(value)}\u00a0${currency}`;
}

/** The steps of an answer, as they stand below columns: `5 Oct`, `W42`, `Oct`. */
export function nameSteps({ edges, step, timezone }: UsageAnswer): readonly string[] {
  const say = (options: Intl.DateTimeFormatOptions) => {
    const format = new Intl.DateTimeFormat("en-GB", { ...options, timeZone: timezone });
    return edges.slice(0, -1).map((at) => format.format(at));
  };
  switch (step) {
    case "day":
    case "week":
      return say({ day: "numeric", month: "short" });
    case "month":
    case "quarter":
      return say({ month: "short", year: "2-digit" });
    case "year":
      return say({ year: "numeric" });
  }
}

/** `1–31 Oct 2026`. */
export function describePeriod({ start, end, timezone }: UsageAnswer): string {
  const format = new Intl.DateTimeFormat("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
    timeZone: timezone,
  });
  // The end is the first moment of the next day, and days are at least 23 hours long.
  return format.formatRange(start, end - DAY_MS / 24);
}

export function formatShare(part: number, whole: number): string {
  return formatRatio(whole > 0 ? part / whole : null);
}
