// Processes lines for display: drops the warm-up and outliers, then smooths. Stored values do not change.

export interface XyLine {
  readonly x: Float64Array;
  readonly values: Float64Array;
}

export interface LineProcessing {
  /** Weight of previous values, 0–0.99. */
  readonly smoothing: number;
  /** In units of x, from the first point of each line. */
  readonly warmUp: number;
  /** Percentile dropped on either side; 0: none. */
  readonly outliers: number;
}

export function processLine(line: XyLine, { smoothing, warmUp, outliers }: LineProcessing): XyLine {
  return smooth(dropOutliers(dropWarmUp(line, warmUp), outliers), smoothing);
}

function dropWarmUp({ x, values }: XyLine, warmUp: number): XyLine {
  const first = x[0];
  if (warmUp <= 0 || first === undefined) return { x, values };
  const from = x.findIndex((position) => position >= first + warmUp);
  return from < 0
    ? { x: x.subarray(0, 0), values: values.subarray(0, 0) }
    : { x: x.subarray(from), values: values.subarray(from) };
}

function dropOutliers({ x, values }: XyLine, percentile: number): XyLine {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort();
  if (percentile <= 0 || sorted.length < 10) return { x, values };
  const low = sorted[Math.floor((sorted.length - 1) * (percentile / 100))] ?? Number.NEGATIVE_INFINITY;
  const high = sorted[Math.ceil((sorted.length - 1) * (1 - percentile / 100))] ?? Number.POSITIVE_INFINITY;
  const kept = x.map((_, at) => at).filter((at) => inside(values[at], low, high));
  return { x: Float64Array.from(kept, (at) => x[at] ?? 0), values: Float64Array.from(kept, (at) => values[at] ?? 0) };
}

function inside(value: number | undefined, low: number, high: number): boolean {
  return value !== undefined && value >= low && value <= high;
}

/** Exponential moving average with bias correction; gaps (NaN) keep the state. */
function smooth({ x, values }: XyLine, weight: number): XyLine {
  if (weight <= 0) return { x, values };
  const means = new Float64Array(values.length);
  let [sum, total] = [0, 0];
  values.forEach((value, at) => {
    if (Number.isNaN(value)) {
      means[at] = Number.NaN;
      return;
    }
    sum = weight * sum + (1 - weight) * value;
    total = weight * total + (1 - weight);
    means[at] = sum / total;
  });
  return { x, values: means };
}
