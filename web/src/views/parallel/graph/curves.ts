// Curves below the lanes: compute and communication shares, FLOPs and memory by row, as far as the trace has them.

import type { MareyRow } from "../../../api/marey.ts";
import type { TraceCurves } from "../../../api/traces-client.ts";
import { formatBytes, formatFlops, formatRatio } from "../../../base/format.ts";
import { CURVES, type CurveName } from "../../../state/parallel.ts";
import { KIND_COLORS } from "./kinds.ts";

export { CURVES, type CurveName };

export const CURVE_TITLES: Readonly<Record<CurveName, string>> = {
  compute: "Compute share",
  communication: "Communication share",
  flops: "FLOPs per second",
  memory: "Memory",
};

export const CURVE_COLORS: Readonly<Record<CurveName, string>> = {
  compute: KIND_COLORS.forward,
  communication: KIND_COLORS.communication,
  flops: KIND_COLORS.compute,
  memory: KIND_COLORS.memory,
};

export interface LaneCurve {
  readonly row: number;
  readonly color: string;
  readonly timesNs: Float64Array;
  readonly values: Float64Array;
  /** The maximum over all rows. */
  readonly most: number;
  /** Label of the top of the curve, once for all rows. */
  readonly scale: string | null;
}

/** The curve of a rank on its row, the mean over its ranks on the row of a stage; none on expanded rows and lanes. */
export function listCurves(
  curves: TraceCurves | undefined,
  shown: CurveName,
  rows: readonly MareyRow[],
  ranksOf: (stage: number | null) => readonly number[],
  ink: (css: string) => string,
): readonly LaneCurve[] {
  const values = curves?.[shown];
  if (!curves || !values) return [];
  const color = ink(CURVE_COLORS[shown]);
  const means = rows.flatMap((row, at) => {
    const ranks = row.depth === 0 ? ranksOf(row.stage) : row.rank === null ? [] : [row.rank];
    return row.isOpen || row.depth > 1 ? [] : { row: at, ...meanOf(curves, values, new Set(ranks)) };
  });
  const most = Math.max(...means.map((mean) => mean.values.reduce((high, value) => Math.max(high, value || 0), 0)));
  const scale = `up to ${formatTop(shown, most)}`;
  return most > 0 ? means.map((mean, at) => ({ ...mean, color, most, scale: at === 0 ? scale : null })) : [];
}

function formatTop(curve: CurveName, most: number): string {
  if (curve === "memory") return formatBytes(most);
  return curve === "flops" ? formatFlops(most) : formatRatio(most);
}

function meanOf(curves: TraceCurves, values: Float64Array, ranks: ReadonlySet<number>) {
  const sums = new Map<number, { sum: number; count: number }>();
  values.forEach((value, at) => {
    if (!ranks.has(curves.rank[at] ?? Number.NaN) || Number.isNaN(value)) return;
    const time = curves.timesNs[at] ?? 0;
    const entry = sums.get(time) ?? { sum: 0, count: 0 };
    sums.set(time, { sum: entry.sum + value, count: entry.count + 1 });
  });
  const times = [...sums.keys()].sort((a, b) => a - b);
  return {
    timesNs: Float64Array.from(times),
    values: Float64Array.from(times, (time) => (sums.get(time)?.sum ?? 0) / (sums.get(time)?.count ?? 1)),
  };
}

export function hasCurve(curves: TraceCurves | undefined, name: CurveName): boolean {
  return curves?.[name]?.some((value) => value > 0) ?? false;
}
