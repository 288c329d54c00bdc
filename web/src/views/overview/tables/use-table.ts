// The table that the screen shows, from only the data that it needs.

import { useMemo } from "react";
import type { WorkloadState } from "../../../api/generated.ts";
import type { Loadable } from "../../../base/loadable.ts";
import { ACTIVE_STATES, useNodes, useWorkloads } from "../../../data/queries.ts";
import type { Units } from "../../../data/units.ts";
import { WORKLOAD_STATES } from "../../../state/attributes.ts";
import type { Screen } from "../../../state/screen.ts";
import type { Where } from "../../../state/where.ts";
import { nodeTable } from "./node-table.tsx";
import type { TableSpec } from "./table-spec.ts";
import { unitTable } from "./unit-table.tsx";
import { workloadTable } from "./workload-table.tsx";

export interface Table {
  readonly spec: TableSpec<unknown>;
  /** How many rows there are, also where not all were fetched. */
  readonly total: number;
}

export function useTable({ table, where }: Screen, units: Loadable<Units>): Loadable<Table> {
  const states = useMemo(() => wantedStates(where), [where]);
  const workloads = useWorkloads(states, table === "workloads");
  const nodes = useNodes(table === "nodes");
  const value = useMemo((): Table | undefined => {
    switch (table) {
      case "workloads": {
        const list = workloads.value;
        return list && { spec: workloadTable(list.workloads, units.value), total: list.total };
      }
      case "picture":
      case "units":
        return units.value && { spec: unitTable(units.value), total: units.value.snapshot.rowCount };
      case "nodes":
        return nodes.value && { spec: nodeTable(nodes.value, units.value), total: nodes.value.length };
    }
  }, [table, workloads.value, units.value, nodes.value]);
  return { ...{ picture: units, workloads, units, nodes }[table], value };
}

/** Active workloads always, so that they can be counted; of those that have ended only what is asked for. */
function wantedStates(where: Where): readonly WorkloadState[] {
  const named = where.flat().flatMap((condition) => {
    return condition.kind === "names" && condition.attribute === "workload_state" ? condition.names : [];
  });
  const ended = WORKLOAD_STATES.filter((state) => named.includes(state) && !ACTIVE_STATES.includes(state));
  return [...ACTIVE_STATES, ...ended];
}
