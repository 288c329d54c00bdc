// Finds the scatter points within a brush or a time range. Pure.

import type { Scatter } from "../../api/diagnosis-client.ts";
import type { TimeRange } from "../../charts/line-chart.tsx";
import type { Rectangle } from "../../charts/scatter-chart.tsx";
import type { Brush } from "../../state/diagnostics.ts";

export interface HighlightedPoints {
  /** By point; null: no brush and no range, all points are highlighted. */
  readonly mask: Uint8Array | null;
  readonly points: number;
  readonly outliers: number;
  readonly timesMs: readonly number[];
  readonly units: readonly string[];
}

export function highlightPoints(scatter: Scatter, brush: Brush | null, range: TimeRange | null): HighlightedPoints {
  if (brush === null && range === null) {
    return { mask: null, points: scatter.x.length, outliers: scatter.outliers, timesMs: [], units: [] };
  }
  const { x, y, timesMs, unit, isOutlier } = scatter;
  const mask = new Uint8Array(x.length);
  const times: number[] = [];
  const codes = new Set<number>();
  let outliers = 0;
  for (let at = 0; at < x.length; at += 1) {
    const [px, py, time] = [x[at] ?? 0, y[at] ?? 0, timesMs[at] ?? 0];
    if (brush && (px < brush.xFrom || px > brush.xTo || py < brush.yFrom || py > brush.yTo)) continue;
    if (range && (time < range.fromMs || time > range.toMs)) continue;
    mask[at] = 1;
    times.push(time);
    codes.add(unit.codes[at] ?? 0);
    outliers += isOutlier[at] ?? 0;
  }
  const units = [...codes].flatMap((code) => unit.names[code] ?? []);
  return { mask, points: times.length, outliers, timesMs: times, units: units.sort() };
}

/** What the GPUs of a cluster did at some times: medians of both metrics. */
export interface ClusterThen {
  readonly label: number;
  readonly gpus: number;
  readonly x: number;
  readonly y: number;
}

/**
 * The medians of each cluster at the times of the brushed points, of all its GPUs. Points are weighted by how many each stands
 * for: outliers are sent in full, other points are sampled. A cluster without points at these times is left out.
 */
export function compareThen(
  scatter: Scatter,
  timesMs: readonly number[],
  clusters: readonly { readonly label: number; readonly units: readonly string[] }[],
): readonly ClusterThen[] {
  const times = new Set(timesMs);
  const sentOutliers = scatter.isOutlier.reduce((sum, flag) => sum + flag, 0);
  const sentOthers = scatter.isOutlier.length - sentOutliers;
  const outlierWeight = sentOutliers > 0 ? scatter.outliers / sentOutliers : 0;
  const otherWeight = sentOthers > 0 ? (scatter.points - scatter.outliers) / sentOthers : 0;
  const labels = new Map(clusters.flatMap(({ label, units }) => units.map((unit) => [unit, label] as const)));
  const labelOfCode = scatter.unit.names.map((name) => (name === null ? undefined : labels.get(name)));
  const rows = new Map<number, number[]>();
  for (let at = 0; at < scatter.x.length; at += 1) {
    const label = labelOfCode[scatter.unit.codes[at] ?? 0];
    if (label === undefined || !times.has(scatter.timesMs[at] ?? 0)) continue;
    const members = rows.get(label);
    if (members) members.push(at);
    else rows.set(label, [at]);
  }
  const weigh = (at: number) => (scatter.isOutlier[at] ? outlierWeight : otherWeight);
  return clusters.flatMap(({ label, units }) => {
    const members = rows.get(label);
    if (!members) return [];
    const [x, y] = [scatter.x, scatter.y].map((values) => findWeightedMedian(members, values, weigh));
    return [{ label, gpus: units.length, x: x ?? 0, y: y ?? 0 }];
  });
}

function findWeightedMedian(rows: readonly number[], values: Float64Array, weigh: (row: number) => number): number {
  const ordered = rows.toSorted((a, b) => (values[a] ?? 0) - (values[b] ?? 0));
  const half = ordered.reduce((sum, row) => sum + weigh(row), 0) / 2;
  let sum = 0;
  for (const row of ordered) {
    sum += weigh(row);
    if (sum >= half) return values[row] ?? 0;
  }
  return 0;
}

/** The bounds of all points with a margin; null without points. */
export function findBounds({ x, y, density }: Pick<Scatter, "x" | "y" | "density">): Rectangle | null {
  if (x.length === 0) return null;
  let [xFrom, xTo, yFrom, yTo] = density
    ? [density.xLow, density.xHigh, density.yLow, density.yHigh]
    : [x[0] ?? 0, x[0] ?? 0, y[0] ?? 0, y[0] ?? 0];
  for (let at = 0; at < x.length; at += 1) {
    xFrom = Math.min(xFrom, x[at] ?? xFrom);
    xTo = Math.max(xTo, x[at] ?? xTo);
    yFrom = Math.min(yFrom, y[at] ?? yFrom);
    yTo = Math.max(yTo, y[at] ?? yTo);
  }
  const [xMargin, yMargin] = [(xTo - xFrom || Math.abs(xTo) || 1) * 0.03, (yTo - yFrom || Math.abs(yTo) || 1) * 0.03];
  return { xFrom: xFrom - xMargin, xTo: xTo + xMargin, yFrom: yFrom - yMargin, yTo: yTo + yMargin };
}

/** The rectangle around all outliers; null without outliers. */
export function boundOutliers({ x, y, isOutlier }: Pick<Scatter, "x" | "y" | "isOutlier">): Brush | null {
  let [xFrom, xTo, yFrom, yTo] = [1, -1, 1, -1].map((sign) => sign * Number.POSITIVE_INFINITY) as [
    number,
    number,
    number,
    number,
  ];
  for (let at = 0; at < x.length; at += 1) {
    if (!isOutlier[at]) continue;
    xFrom = Math.min(xFrom, x[at] ?? 0);
    xTo = Math.max(xTo, x[at] ?? 0);
    yFrom = Math.min(yFrom, y[at] ?? 0);
    yTo = Math.max(yTo, y[at] ?? 0);
  }
  if (xFrom > xTo) return null;
  const [xMargin, yMargin] = [(xTo - xFrom || Math.abs(xTo) || 1) * 0.01, (yTo - yFrom || Math.abs(yTo) || 1) * 0.01];
  const round = (value: number) => Number(value.toPrecision(6));
  return {
    xFrom: round(xFrom - xMargin),
    xTo: round(xTo + xMargin),
    yFrom: round(yFrom - yMargin),
    yTo: round(yTo + yMargin),
  };
}
