// Table of trace statistics, one column per trace.

import type { TraceDescription } from "../../../api/generated.ts";
import { formatCount, formatRatio, isKnown, MISSING } from "../../../base/format.ts";
import { formatDuration } from "../../../base/time.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import styles from "./history.module.css";
import { formatUnits, nameUnit } from "./words.ts";

type Fact = readonly [label: string, format: (trace: TraceDescription) => string];

export const FACTS: readonly Fact[] = [
  ["Jobs", ({ jobs }) => formatCount(jobs)],
  ["Dropped rows", ({ dropped }) => formatCount(dropped)],
  ["Users", ({ users }) => formatCount(users.users)],
  ["Jobs of the most active user", ({ users }) => formatRatio(users.largest_user_share)],
  ["Time span of submissions", (trace) => formatDuration(trace.last_submit_s - trace.first_submit_s)],
  ["Size unit", ({ size_unit }) => nameUnit(size_unit)],
  ["Machine", formatMachine],
  ["Unit-hours used", ({ unit_hours }) => formatFigure(unit_hours)],
  ["Utilization", ({ occupancy }) => formatRatio(occupancy?.utilization)],
  ["Time over capacity", ({ occupancy }) => formatRatio(occupancy?.over_capacity_share)],
  ["Median run time", ({ run_s }) => formatDuration(run_s.quantiles?.p50)],
  ["95th percentile run time", ({ run_s }) => formatDuration(run_s.quantiles?.p95)],
  ["Median size", ({ size_units }) => formatFigure(size_units.quantiles?.p50)],
  ["Largest size", ({ size_units }) => formatFigure(size_units.quantiles?.maximum)],
  ["Median wait", ({ waiting }) => formatDuration(waiting?.wait_s.quantiles?.p50)],
  ["Mean wait", ({ waiting }) => formatDuration(waiting?.wait_s.mean)],
  ["Mean bounded slowdown", ({ waiting }) => formatFigure(waiting?.mean_bounded_slowdown)],
  ["Mean waiting jobs", ({ occupancy }) => formatFigure(occupancy?.mean_waiting_jobs)],
  ["Busiest / quietest hour", ({ arrivals }) => formatFigure(arrivals.busiest_to_quietest_hour)],
  ["Jobs with unknown status", ({ failures }) => formatRatio(failures ? failures.unknown_share : 1)],
  ["Unsuccessful, of known status", ({ failures }) => formatRatio(failures && sumUnsuccessful(failures.statuses))],
  ["Unit-hours lost", ({ failures }) => formatFigure(failures?.lost_unit_hours)],
  ["Unit-hours lost, share", ({ failures }) => formatRatio(failures?.lost_share)],
  ["In users' 10 largest job groups", ({ users }) => formatRatio(users.repetition?.top_10_cover.value)],
];

export function FactsTable({ traces }: { traces: readonly TraceDescription[] }) {
  return (
    <div className={styles.facts}>
      <table aria-label="Trace statistics">
        <thead>
          <tr>
            <td />
            {traces.map(({ name }, place) => (
              <th key={name} scope="col">
                <i data-swatch={true} style={{ background: colorAt(place) }} /> {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {FACTS.map(([label, format]) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              {traces.map((trace) => (
                <td key={trace.name}>{format(trace)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const exact = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

/** Rounded to an integer from 100 on, else to two digits. */
export function formatFigure(value: number | null | undefined): string {
  if (!isKnown(value)) return MISSING;
  return value >= 100 ? formatCount(Math.round(value)) : exact.format(value);
}

function formatMachine({ total_units, occupancy, size_unit }: TraceDescription): string {
  if (total_units !== null) return formatUnits(total_units, size_unit);
  if (!occupancy) return MISSING;
  return `${formatUnits(Math.round(occupancy.capacity_units), size_unit)} (a guess: ${occupancy.capacity_reason})`;
}

function sumUnsuccessful(statuses: readonly { readonly status: string; readonly share: { readonly value: number } }[]) {
  return statuses.reduce((sum, { status, share }) => sum + (status === "completed" ? 0 : share.value), 0);
}
