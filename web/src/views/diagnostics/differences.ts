// What differs between two diagnoses, in sentences, most telling first. Pure.

import type { DiagnosisAnswer } from "../../api/generated.ts";
import { formatPlural, formatRatio } from "../../base/format.ts";

type Compared = Pick<
  DiagnosisAnswer,
  | "gpus"
  | "gpu_hours"
  | "wasted_gpu_hours"
  | "energy_joules"
  | "clusters"
  | "findings"
  | "odd"
  | "metric"
  | "units"
  | "notes"
>;

/** Smaller changes of a number are not worth a sentence. */
const LEAST_CHANGE = 0.05;

/** Sentences about the second against the first; "alike" is one, too. */
export function sayDifferences(first: Compared, second: Compared): readonly string[] {
  const found = [...sayClusters(first, second), ...sayFindings(first, second), ...sayOdd(first, second)];
  const numbers = [
    sayShare("wasted share of its GPU-hours", wastedShare(first), wastedShare(second)),
    // Hours without samples have no energy: the rate would tell of these.
    isAllMeasured(first) && isAllMeasured(second)
      ? sayRate("energy per GPU-hour", perHour(first), perHour(second))
      : null,
  ].filter((sentence) => sentence !== null);
  const all = [...found, ...numbers];
  if (first.metric !== second.metric) {
    all.unshift("The two are compared by different metrics: the first one's is not measured in the second.");
  }
  return all.length > 0 ? all : ["Both have the same clusters and findings, and waste and energy are alike."];
}

function sayClusters(first: Compared, second: Compared): readonly string[] {
  const [before, after] = [first.clusters, second.clusters];
  const sizes = (clusters: Compared["clusters"]) => clusters.map(({ size }) => size).join(" + ");
  if (before.length === 0 || after.length === 0) return [];
  if (before.length !== after.length) {
    return [
      `The first has ${formatPlural(before.length, "cluster")} (${sizes(before)}), the second ${after.length} (${sizes(after)}).`,
    ];
  }
  if (before.length === 1) return [];
  const moved = countMoved(before, after);
  if (moved === null) {
    return sizes(before) === sizes(after) ? [] : [`Clusters of ${sizes(before)} GPUs became ${sizes(after)}.`];
  }
  return moved === 0 ? [] : [`${formatPlural(moved, "GPU")} changed the cluster.`];
}

/** GPUs that both have and that are with others now; null where they have no GPU in common. */
function countMoved(before: Compared["clusters"], after: Compared["clusters"]): number | null {
  const label = new Map(before.flatMap(({ units, label: at }) => units.map((unit) => [unit, at] as const)));
  const common = after.flatMap(({ units, label: at }) =>
    units.flatMap((unit) => (label.has(unit) ? [{ from: label.get(unit), to: at }] : [])),
  );
  if (common.length === 0) return null;
  // Each of the later clusters continues the earlier one that most of its GPUs come from.
  let stayed = 0;
  for (const members of Map.groupBy(common, ({ to }) => to).values()) {
    stayed += Math.max(...[...Map.groupBy(members, ({ from }) => from).values()].map((part) => part.length));
  }
  return common.length - stayed;
}

function sayFindings(first: Compared, second: Compared): readonly string[] {
  const kinds = (answer: Compared) => new Map(answer.findings.map(({ kind, title }) => [kind, title]));
  const [before, after] = [kinds(first), kinds(second)];
  const gone = [...before].filter(([kind]) => !after.has(kind)).map(([, title]) => `Only in the first: ${title}`);
  const come = [...after].filter(([kind]) => !before.has(kind)).map(([, title]) => `Only in the second: ${title}`);
  return [...gone, ...come].map((text) => (text.endsWith(".") ? text : `${text}.`));
}

function sayOdd(first: Compared, second: Compared): readonly string[] {
  if (first.odd.length === second.odd.length) return [];
  const say = ({ odd }: Compared) => (odd.length === 0 ? "no GPU is odd" : `${formatPlural(odd.length, "GPU")} odd`);
  return [`In the first ${say(first)}, in the second ${say(second)}.`];
}

function wastedShare({ gpu_hours, wasted_gpu_hours }: Compared): number | null {
  return wasted_gpu_hours === null || gpu_hours <= 0 ? null : wasted_gpu_hours / gpu_hours;
}

function perHour({ energy_joules, gpu_hours }: Compared): number | null {
  return energy_joules === null || gpu_hours <= 0 ? null : energy_joules / gpu_hours;
}

function isAllMeasured({ notes }: Compared): boolean {
  return !notes.some((note) => /^The (first|last) sample is|^There are no samples/.test(note));
}

function sayShare(name: string, before: number | null, after: number | null): string | null {
  if (before === null || after === null || Math.abs(after - before) < LEAST_CHANGE) return null;
  return `The ${name} ${after > before ? "rises" : "falls"} from ${formatRatio(before)} to ${formatRatio(after)}.`;
}

function sayRate(name: string, before: number | null, after: number | null): string | null {
  if (before === null || after === null || before <= 0) return null;
  const change = after / before - 1;
  if (Math.abs(change) < LEAST_CHANGE) return null;
  return `The ${name} is ${formatRatio(Math.abs(change))} ${change > 0 ? "higher" : "lower"} in the second.`;
}
