// The details of several units, a group or a selection: totals and actions.

import { useMemo } from "react";
import { nameAt } from "../../../api/columns.ts";
import { MINUTE_MS } from "../../../base/durations.ts";
import { formatPlural } from "../../../base/format.ts";
import { mapLoadable } from "../../../base/loadable.ts";
import { useCluster } from "../../../data/queries.ts";
import { type Units, useUnits } from "../../../data/units.ts";
import { alignWaste, useUnitWaste } from "../../../data/waste.ts";
import { Card, OpenLink, Panel, PanelHead } from "../../../parts/panel/panel.tsx";
import type { Selection } from "../../../state/selection.ts";
import { decodeGroup, LONGEST_UNITS } from "../../../state/selection.ts";
import { useScreen } from "../../../state/use-screen.ts";
import { useNow } from "../../../widgets/clock-context.ts";
import { Facts } from "../../../widgets/facts.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { Actions } from "./actions.tsx";
import { findLimits } from "./limits.ts";
import { MetricHistory } from "./metric-history.tsx";
import { useRecentRange } from "./node-details.tsx";
import { RulesCard } from "./rules-card.tsx";
import { listSelectedRows } from "./selected-rows.ts";
import { SelectionActions } from "./selection-actions.tsx";
import { totalFacts } from "./total-facts.ts";
import { computeTotals, listLargest } from "./unit-totals.ts";
import styles from "./units-details.module.css";
import { WhyTheyWait } from "./why-they-wait.tsx";

const MOST_LISTED = 6;
/** The most units whose series are requested for a chart. */
const MOST_SAMPLED = 40;

export function GroupDetails({ name }: { name: string }) {
  return <UnitsDetails selection={{ kind: "group", key: name }} />;
}

export function SelectionDetails({ name }: { name: string }) {
  return <UnitsDetails selection={{ kind: "units", key: name }} />;
}

function UnitsDetails({ selection }: { selection: Selection }) {
  const loaded = useUnits();
  const rows = useMemo(
    () => (loaded.value ? listSelectedRows(loaded.value, selection) : []),
    [loaded.value, selection],
  );
  const { kind, title, path } = headOf(selection, rows.length);
  return (
    <Panel>
      <PanelHead
        kind={kind}
        title={title}
        detail={path}
        actions={
          loaded.value &&
          rows.length > 0 && (
            <>
              <Actions workload={null} isWaiting={!holdsUnits(loaded.value, rows)} />
              <SelectionActions units={loaded.value} rows={rows} selection={selection} />
            </>
          )
        }
      />
      <Frame
        source={mapLoadable(loaded, (units) => ({ units, rows }))}
        what="the units"
        isEmpty={() => rows.length === 0}
        empty="These units no longer exist."
      >
        {({ units }) => <Content units={units} rows={rows} selection={selection} />}
      </Frame>
    </Panel>
  );
}

function headOf(selection: Selection, count: number): { kind: string; title: string; path: string | null } {
  const group = selection.kind === "group" ? decodeGroup(selection.key) : null;
  if (group === null) return { kind: "Selection", title: formatPlural(count, "unit"), path: null };
  const steps = group.steps.map(({ attribute, name }) => name ?? `no ${attribute.replaceAll("_", " ")}`);
  const last = group.steps.at(-1)?.attribute ?? "group";
  return {
    kind: last.replaceAll("_", " "),
    title: steps.at(-1) ?? "",
    path: steps.length > 1 ? steps.slice(0, -1).join(" › ") : null,
  };
}

function Content({ units, rows, selection }: { units: Units; rows: readonly number[]; selection: Selection }) {
  const isPast = useScreen().at !== null;
  const now = useNow();
  const cluster = useCluster().value;
  const waste = useUnitWaste(!isPast).value;
  const range = useRecentRange();
  const minute = Math.floor(now / MINUTE_MS) * MINUTE_MS;
  const totals = useMemo(
    () => computeTotals(units, rows, minute, waste && !isPast ? alignWaste(units.snapshot, waste) : null),
    [units, rows, minute, waste, isPast],
  );
  const sampled = useMemo(() => sampleUnits(units, rows), [units, rows]);
  const workloads = listLargest(units, rows, "workload", "workload_name", MOST_LISTED);
  const isCut = selection.kind === "units" && selection.key.length > LONGEST_UNITS;
  return (
    <>
      <Card label="Facts">
        <Facts facts={totalFacts(totals, cluster?.gpu_util_ratio ?? null)} />
      </Card>
      {isCut && (
        <p className={styles.note}>
          The link cannot hold all of these units and names only the first ones. Share a group or a filter instead.
        </p>
      )}
      <RulesCard units={units} rows={rows} workload={null} />
      {totals.states.requested > 0 && <WhyTheyWait units={units} rows={rows} />}
      {sampled.length > 0 && (
        <Card title="Last 6 hours">
          {sampled.length < totals.gpus && (
            <p className={styles.note}>
              {sampled.length} of {formatPlural(totals.gpus, "unit")}, evenly sampled
            </p>
          )}
          <MetricHistory
            subject={{ unit: sampled }}
            range={range}
            unitCount={sampled.length}
            tops={findLimits(units, rows)}
          />
        </Card>
      )}
      {workloads.length > 1 && (
        <Card title={formatPlural(totals.workloads, "workload")}>
          <ul className={styles.list}>
            {workloads.map(({ key, title, units: count }) => (
              <li key={key}>
                <OpenLink kind="workload" name={key}>
                  {title}
                </OpenLink>
                <span>{formatPlural(count, "unit")}</span>
              </li>
            ))}
            {totals.workloads > workloads.length && <li>and {totals.workloads - workloads.length} more</li>}
          </ul>
        </Card>
      )}
    </>
  );
}

/** Whether any of them exists: the others are requested only. */
function holdsUnits({ snapshot }: Units, rows: readonly number[]): boolean {
  const kind = snapshot.names("kind");
  return rows.some((row) => nameAt(kind, row) !== "requested");
}

/** Existing units only: requested GPUs have no history. */
function sampleUnits({ snapshot }: Units, rows: readonly number[]): readonly string[] {
  const kind = snapshot.names("kind");
  const unit = snapshot.names("unit");
  const real = rows.filter((row) => nameAt(kind, row) !== "requested");
  const count = Math.min(MOST_SAMPLED, real.length);
  return Array.from({ length: count }, (_, index) => {
    return nameAt(unit, real[Math.floor((index * real.length) / count)] ?? 0) ?? "";
  });
}
