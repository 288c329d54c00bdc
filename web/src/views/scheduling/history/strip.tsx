// Summary of the selected traces, one figure each, in its color.

import type { TracesDescription } from "../../../api/generated.ts";
import { formatPlural, formatRatio } from "../../../base/format.ts";
import { formatShortDuration } from "../../../base/time.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { Strip } from "../../../widgets/strip.tsx";
import styles from "./history.module.css";
import { formatUnits } from "./words.ts";

export function HistoryStrip({ description }: { description: TracesDescription | undefined }) {
  return (
    <Strip>
      {description?.traces.map((trace, place) => (
        <div key={trace.name} className={styles.figure} style={{ borderColor: colorAt(place) }}>
          <b>{trace.name}</b>
          <span>
            {formatPlural(trace.jobs, "job")} in {formatShortDuration(trace.last_submit_s - trace.first_submit_s)}
            {trace.total_units !== null && `, ${formatUnits(trace.total_units, trace.size_unit)}`}
            {trace.occupancy && `, ${formatRatio(trace.occupancy.utilization)} used`}
          </span>
        </div>
      ))}
    </Strip>
  );
}
