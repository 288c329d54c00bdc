// The details of a unit: location, holder, current metrics, and the last hours.

import { nameAt, numberAt } from "../../../api/columns.ts";
import type { UnitNameColumn, UnitNumberColumn } from "../../../api/snapshot.ts";
import { formatBytes, formatCount, formatQuantity, formatRatio, formatWatts } from "../../../base/format.ts";
import { mapLoadable } from "../../../base/loadable.ts";
import { useNode } from "../../../data/queries.ts";
import { findMetric, type UnitMetric, type Units, useUnits } from "../../../data/units.ts";
import { FaultList } from "../../../parts/faults/fault-list.tsx";
import { Card, OpenLink, Panel, PanelHead } from "../../../parts/panel/panel.tsx";
import { Facts } from "../../../widgets/facts.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { RelativeTime } from "../../../widgets/relative-time.tsx";
import { Tag } from "../../../widgets/tag.tsx";
import { toUnitState, UNIT_STATE_WORDS, UNIT_TONES } from "../words.ts";
import { findLimits } from "./limits.ts";
import { MetricHistory } from "./metric-history.tsx";
import { useRecentRange } from "./node-details.tsx";
import { RulesCard } from "./rules-card.tsx";

export function UnitDetails({ name }: { name: string }) {
  const units = mapLoadable(useUnits(), (value) => ({ value, row: findRow(value, name) }));
  return (
    <Panel>
      {units.value === undefined && <PanelHead kind="Unit" title={name} />}
      <Frame
        source={units}
        what="the unit"
        isEmpty={({ row }) => row === null}
        empty={<PanelHead kind="Unit" title={name} detail="This unit does not exist now." />}
      >
        {({ value, row }) => row !== null && <Content units={value} row={row} name={name} />}
      </Frame>
    </Panel>
  );
}

function findRow({ snapshot }: Units, name: string): number | null {
  const { codes, names } = snapshot.names("unit");
  const code = names.indexOf(name);
  const row = code < 0 ? -1 : codes.indexOf(code);
  return row < 0 ? null : row;
}

function Content({ units, row, name }: { units: Units; row: number; name: string }) {
  const range = useRecentRange();
  const { snapshot } = units;
  const word = (column: UnitNameColumn) => nameAt(snapshot.names(column), row);
  const number = (column: UnitNumberColumn) => numberAt(snapshot.numbers(column), row);
  const state = toUnitState(word("unit_state"));
  const powerLimit = number("power_limit_watts");
  const memory = number("memory_bytes");
  return (
    <>
      <PanelHead
        kind={word("kind") === "mig" ? "MIG instance" : state === "requested" ? "Requested GPU" : "GPU"}
        title={name}
        tag={<Tag tone={UNIT_TONES[state]}>{UNIT_STATE_WORDS[state]}</Tag>}
        detail={[word("machine_type"), word("mig_profile"), word("node_partitions") ?? word("partition")]
          .filter(Boolean)
          .join(" · ")}
      />
      <UnitFaults unit={name} node={word("node")} />
      <Card title="Held by">
        <Holder units={units} row={row} />
      </Card>
      {state !== "requested" && (
        <>
          <Card title="Now">
            <Facts facts={measured(units, row, powerLimit, memory)} />
          </Card>
          <RulesCard units={units} rows={[row]} workload={word("workload")} unit={name} />
          <Card title="Last 6 hours">
            <MetricHistory subject={{ unit: name }} range={range} unitCount={1} tops={findLimits(units, [row])} />
          </Card>
          <Card title="Location">
            <Facts
              facts={[
                { name: "node", value: <NodeLink node={word("node")} /> },
                { name: "node state", value: word("node_state") },
                { name: "reason", value: word("node_reason") },
                { name: "index", value: number("index") },
                { name: "rack", value: word("rack") },
                { name: "UUID", value: word("uuid") },
              ]}
            />
          </Card>
        </>
      )}
    </>
  );
}

function UnitFaults({ unit, node }: { unit: string; node: string | null }) {
  return node === null ? null : <FaultsOf unit={unit} node={node} />;
}

function FaultsOf({ unit, node }: { unit: string; node: string }) {
  const faults = useNode(node).value?.faults.filter((fault) => fault.unit === unit) ?? [];
  if (faults.length === 0) return null;
  return (
    <Card title="Faults in 30 days">
      <FaultList faults={faults} namesUnits={false} />
    </Card>
  );
}

function NodeLink({ node }: { node: string | null }) {
  return node === null ? null : <OpenLink kind="node" name={node} />;
}

function Holder({ units: { snapshot }, row }: { units: Units; row: number }) {
  const word = (column: UnitNameColumn) => nameAt(snapshot.names(column), row);
  const workload = word("workload");
  if (workload === null) return <>No workload</>;
  const holders = numberAt(snapshot.numbers("holders"), row) ?? 0;
  const started = numberAt(snapshot.numbers("started_at"), row);
  const gpus = numberAt(snapshot.numbers("gpus_requested"), row);
  return (
    <Facts
      facts={[
        {
          name: "workload",
          value: (
            <OpenLink kind="workload" name={workload}>
              {word("workload_name") ?? workload}
            </OpenLink>
          ),
        },
        { name: "user", value: word("user") },
        { name: "project", value: word("project") },
        { name: "total GPUs", value: gpus === null ? null : formatCount(gpus) },
        { name: "since", value: started === null ? null : <RelativeTime at={started} /> },
        { name: "shared with", value: holders > 1 ? `${holders - 1} more` : null },
      ]}
    />
  );
}

function measured(units: Units, row: number, powerLimit: number | null, memory: number | null) {
  const read = (metric: UnitMetric) => {
    const values = findMetric(units, metric);
    return values === null ? null : numberAt(values, row);
  };
  const outOf = (limit: number | null, format: (value: number) => string) =>
    limit === null ? "" : ` of ${format(limit)}`;
  return [
    { name: "utilization", value: formatRatio(read("gpu_util_ratio")) },
    { name: "power", value: `${formatWatts(read("power_watts"))}${outOf(powerLimit, formatWatts)}` },
    { name: "memory", value: `${formatBytes(read("memory_used_bytes"))}${outOf(memory, formatBytes)}` },
    { name: "temperature", value: formatQuantity(read("gpu_temperature_celsius"), "celsius") },
  ];
}
