// Splits a range of numbers into bins: their limits, and the bin of a value. Grouping is elsewhere.

/** The limits of bins, rising: bin k holds limits[k] ≤ value < limits[k + 1], the last bin its upper limit too. */
export function computeLimits(values: Iterable<number>, bins: number | readonly number[]): readonly number[] {
  if (typeof bins !== "number") return [Number.NEGATIVE_INFINITY, ...bins, Number.POSITIVE_INFINITY];
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return min <= max ? computeRoundLimits(min, max, bins) : [0, 0];
}

/** Finer than this, the limits are lost in rounding. */
const MIN_WIDTH = 1e-300;
const MIN_RELATIVE_WIDTH = 1e-10;

/** At multiples of 1, 2, 2.5 or 5 × 10ⁿ, so that they stay where they are while the data moves a little. */
function computeRoundLimits(min: number, max: number, bins: number): readonly number[] {
  const width = (max - min) / bins;
  const isTooFine = width < MIN_WIDTH || width < MIN_RELATIVE_WIDTH * Math.max(Math.abs(min), Math.abs(max));
  if (bins === 1 || isTooFine || !Number.isFinite(width)) return [min, max];
  let step = roundUp(width);
  while (Math.ceil(max / step) - Math.floor(min / step) > bins) step = roundUp(step * 1.01);
  const first = Math.floor(min / step);
  const count = Math.max(1, Math.ceil(max / step) - first);
  return Array.from({ length: count + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

function roundUp(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  const factor = [1, 2, 2.5, 5, 10].find((candidate) => candidate * power >= step * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** The bin of a value; what lies outside is in the nearest. NaN must not come here. */
export function findBin(limits: readonly number[], value: number): number {
  let low = 0;
  let high = limits.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (value >= (limits[middle] ?? 0)) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** `0.2 – 0.4`, `< 0.5`, `≥ 0.5`: bare numbers; who knows the unit can write it better from the limits. */
export function labelBin(from: number, to: number): string {
  if (from === Number.NEGATIVE_INFINITY) return `< ${labelNumber(to)}`;
  if (to === Number.POSITIVE_INFINITY) return `≥ ${labelNumber(from)}`;
  return from === to ? labelNumber(from) : `${labelNumber(from)} – ${labelNumber(to)}`;
}

export function labelNumber(value: number): string {
  return String(Number(value.toPrecision(6)));
}
