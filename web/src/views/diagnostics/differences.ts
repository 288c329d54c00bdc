// Describes the differences between two diagnoses in sentences, most important first. Pure.

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

/** Smaller changes are not reported. */
const MIN_CHANGE = 0.05;

/** Sentences about the second compared with the first; one that says so where they are alike. */
export function describeDifferences(first: Compared, second: Compared): readonly string[] {
  const sentences = [
    ...describeClusters(first, second),
    ...describeFindings(first, second),
    ...describeOdd(first, second),
  ];
  const numbers = [
    describeShare("wasted share of its GPU-hours", wastedShare(first), wastedShare(second)),
    // Hours without samples have no energy and would distort the rate.
    isAllMeasured(first) && isAllMeasured(second)
      ? describeRate("energy per GPU-hour", perHour(first), perHour(second))
      : null,
  ].filter((sentence) => sentence !== null);
  const all = [...sentences, ...numbers];
  if (first.metric !== second.metric) {
    all.unshift("They are compared by different metrics: the metric of the first has no samples in the second.");
  }
  return all.length > 0 ? all : ["Both have the same clusters and findings, and waste and energy are alike."];
}

function describeClusters(first: Compared, second: Compared): readonly string[] {
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
  return moved === 0 ? [] : [`${formatPlural(moved, "GPU")} changed cluster.`];
}

/** Common GPUs that are in another cluster; null where they have no GPU in common. */
function countMoved(before: Compared["clusters"], after: Compared["clusters"]): number | null {
  const label = new Map(before.flatMap(({ units, label: at }) => units.map((unit) => [unit, at] as const)));
  const common = after.flatMap(({ units, label: at }) =>
    units.flatMap((unit) => (label.has(unit) ? [{ from: label.get(unit), to: at }] : [])),
  );
  if (common.length === 0) return null;
  // Each later cluster continues the earlier one that most of its GPUs come from.
  let stayed = 0;
  for (const members of Map.groupBy(common, ({ to }) => to).values()) {
    stayed += Math.max(...[...Map.groupBy(members, ({ from }) => from).values()].map((part) => part.length));
  }
  return common.length - stayed;
}

function describeFindings(first: Compared, second: Compared): readonly string[] {
  const kinds = (answer: Compared) => new Map(answer.findings.map(({ kind, title }) => [kind, title]));
  const [before, after] = [kinds(first), kinds(second)];
  const onlyFirst = [...before].filter(([kind]) => !after.has(kind)).map(([, title]) => `Only in the first: ${title}`);
  const onlySecond = [...after]
    .filter(([kind]) => !before.has(kind))
    .map(([, title]) => `Only in the second: ${title}`);
  return [...onlyFirst, ...onlySecond].map((text) => (text.endsWith(".") ? text : `${text}.`));
}

function describeOdd(first: Compared, second: Compared): readonly string[] {
  if (first.odd.length === second.odd.length) return [];
  const count = ({ odd }: Compared) => (odd.length === 0 ? "no GPU is odd" : `${formatPlural(odd.length, "GPU")} odd`);
  return [`In the first ${count(first)}, in the second ${count(second)}.`];
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

function describeShare(name: string, before: number | null, after: number | null): string | null {
  if (before === null || after === null || Math.abs(after - before) < MIN_CHANGE) return null;
  return `The ${name} ${after > before ? "rises" : "falls"} from ${formatRatio(before)} to ${formatRatio(after)}.`;
}

function describeRate(name: string, before: number | null, after: number | null): string | null {
  if (before === null || after === null || before <= 0) return null;
  const change = after / before - 1;
  if (Math.abs(change) < MIN_CHANGE) return null;
  return `The ${name} is ${formatRatio(Math.abs(change))} ${change > 0 ? "higher" : "lower"} in the second.`;
}
