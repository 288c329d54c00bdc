// Title, legend and caption of exported figures: what is drawn, of which runs, and how it was treated.

import type { RunRow } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import type { FigureText } from "../../charts/save-picture.ts";
import type { RunBand, RunsPage } from "../../state/runs.ts";
import type { RunGroup } from "./groups.ts";

const GROUPS: Readonly<Record<RunsPage["grouping"], string>> = {
  run: "",
  repeats: "repeats grouped",
  workload: "workloads grouped",
  experiment: "experiments grouped",
};
const BANDS: Readonly<Record<RunBand, string>> = {
  interval: "mean with its 95 % interval",
  range: "mean with minimum and maximum",
  deviation: "mean ± 1 standard deviation",
};
const AXIS_UNITS = { time: "s", step: "steps", epoch: "epochs" };
const MAX_NAMES = 3;

export function describeFigure(page: RunsPage, groups: readonly RunGroup[]): FigureText {
  const rows = groups.flatMap((group) => group.rows);
  return {
    title: titleOf(page, rows),
    // Bars carry their names.
    legend:
      page.drawing === "bars"
        ? []
        : groups.map(({ label, color, rows: { length }, unfinished }) => ({
            label: `${label}${length > 1 ? ` ×${length}` : ""}${unfinished === null ? "" : ` (${unfinished})`}`,
            color,
          })),
    caption: [formatPlural(rows.length, "run"), listNames(rows, "user"), ...listTreatments(page)]
      .filter(Boolean)
      .join("; "),
  };
}

function titleOf({ drawing, axis }: RunsPage, rows: readonly RunRow[]): string {
  const what = {
    lines: `Metrics over ${axis === "time" ? "time" : `${axis}s`}`,
    bars: "Cost of runs",
    scatter: "Quantities of runs",
    parallel: "Params and results of runs",
    table: "Runs",
    hang: "Ranks",
  }[drawing];
  const experiments = listNames(rows, "experiment");
  return experiments === "" ? what : `${what}: ${experiments}`;
}

/** The different values of a field, the first three by name. */
function listNames(rows: readonly RunRow[], field: "experiment" | "user"): string {
  const names = [...new Set(rows.map((row) => row[field]))].filter((name) => name !== null && name !== "");
  const rest = names.length - MAX_NAMES;
  return rest > 0 ? `${names.slice(0, MAX_NAMES).join(", ")} and ${rest} more` : names.join(", ");
}

/** Everything that makes a line differ from its samples. */
function listTreatments(page: RunsPage): readonly string[] {
  const isLines = page.drawing === "lines";
  const isGrouped = page.grouping !== "run";
  return [
    GROUPS[page.grouping],
    isGrouped && isLines ? BANDS[page.band] : "",
    isGrouped && page.drawing === "bars" ? BANDS.interval : "",
    isLines && page.axis === "time" && page.phase !== "" ? `from the start of ${page.phase}` : "",
    isLines && page.smoothing > 0 ? `smoothing ${page.smoothing.toFixed(2)}` : "",
    isLines && page.warmUp > 0 ? `first ${page.warmUp} ${AXIS_UNITS[page.axis]} left out` : "",
    isLines && page.outliers > 0 ? `values beyond p${page.outliers} and p${100 - page.outliers} left out` : "",
  ].filter(Boolean);
}
