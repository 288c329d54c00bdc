// Time series as lines: for each metric and unit the times and the mean, minimum and maximum of each bucket.

import { type Columns, nameAt } from "./columns.ts";

export interface SeriesLine {
  readonly metric: string;
  readonly unit: string;
  readonly timesMs: Float64Array;
  readonly values: Float64Array;
  readonly minima: Float64Array;
  readonly maxima: Float64Array;
}

/** The rows of a line are contiguous and ordered by time. */
export function toSeriesLines(columns: Columns): readonly SeriesLine[] {
  const metrics = columns.findNames("metric");
  const units = columns.findNames("unit");
  const times = columns.findNumbers("time_ms");
  const values = columns.findNumbers("value");
  if (!metrics || !units || !times || !values) return [];
  const minima = columns.findNumbers("min") ?? values;
  const maxima = columns.findNumbers("max") ?? values;
  const lines: SeriesLine[] = [];
  let start = 0;
  for (let row = 1; row <= columns.rowCount; row += 1) {
    const isSameLine =
      row < columns.rowCount && metrics.codes[row] === metrics.codes[start] && units.codes[row] === units.codes[start];
    if (isSameLine) continue;
    lines.push({
      metric: nameAt(metrics, start) ?? "",
      unit: nameAt(units, start) ?? "",
      timesMs: times.subarray(start, row),
      values: values.subarray(start, row),
      minima: minima.subarray(start, row),
      maxima: maxima.subarray(start, row),
    });
    start = row;
  }
  return lines;
}
