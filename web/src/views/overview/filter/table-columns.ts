// The filterable attributes of units, workloads and nodes. A metric of a workload is the mean over its GPUs, that of a
// node the mean over its allocated GPUs; a node has every name that one of its units has.

import { type NameColumn, type NumberColumn, nameAt } from "../../../api/columns.ts";
import type { NodeAnswer, WorkloadAnswer } from "../../../api/generated.ts";
import { SHARED_MARK, type Snapshot } from "../../../api/snapshot.ts";
import { aggregateBy } from "../../../data/aggregate.ts";
import { readAttribute, readNames, readNumbers } from "../../../data/unit-attributes.ts";
import type { Units } from "../../../data/units.ts";
import {
  type AttributeName,
  attributeOf,
  type NameAttributeName,
  type NumberAttribute,
} from "../../../state/attributes.ts";
import { ruleOfAttribute } from "../../../state/rules.ts";
import {
  cacheColumns,
  type FilterColumn,
  type FilterColumns,
  type NamedColumn,
  type NameLists,
  toNameColumn,
  toNameLists,
  toNumberColumn,
} from "./filter-columns.ts";

const SEARCHED_OF_UNITS = [
  "unit",
  "user",
  "project",
  "workload",
  "workload_name",
  "partition",
  "machine_type",
] as const;

export function unitColumns(units: Units): FilterColumns {
  return {
    rowCount: units.snapshot.rowCount,
    has: () => true,
    find: (attribute) => (attribute === "partition" ? listPartitions(units) : readAttribute(units, attribute)),
    get searched() {
      return SEARCHED_OF_UNITS.map((name) => readNames(units, name));
    },
  };
}

/** A unit of a node in several partitions belongs to each of them, independent of its workload. */
function listPartitions(units: Units): NamedColumn {
  const { snapshot } = units;
  const cached = partitionsOf.get(snapshot);
  if (cached) return cached;
  const holderPartition = readNames(units, "partition");
  const places = snapshot.names("node_partitions");
  const isShared = places.names.some((name) => name?.includes(SHARED_MARK));
  const rows = Array.from({ length: isShared ? snapshot.rowCount : 0 }, (_, row) => row);
  const namesOf = (row: number) => (nameAt(places, row) ?? nameAt(holderPartition, row))?.split(SHARED_MARK) ?? [];
  const partitions = isShared ? toNameLists(rows, namesOf) : holderPartition;
  partitionsOf.set(snapshot, partitions);
  return partitions;
}

/** Made once for each snapshot: filters ask for it with every tick. */
const partitionsOf = new WeakMap<Snapshot, NamedColumn>();

type Reader<Row, T> = (row: Row) => T;

const WORKLOAD_NAMES: Partial<Readonly<Record<NameAttributeName, Reader<WorkloadAnswer, string | null>>>> = {
  workload: (row) => row.workload,
  workload_name: (row) => row.name,
  workload_state: (row) => row.state,
  workload_kind: (row) => row.kind,
  user: (row) => row.user,
  project: (row) => row.project,
  experiment: (row) => row.experiment,
  partition: (row) => row.partition,
  resource_type: (row) => row.resource_type,
  qos: (row) => row.qos,
  pending_reason: (row) => row.pending_reason,
};

const WORKLOAD_NUMBERS: Partial<Readonly<Record<AttributeName, Reader<WorkloadAnswer, number | null>>>> = {
  wait_s: (row) => row.wait_s,
  run_s: (row) => row.run_s,
  time_limit_s: (row) => row.time_limit_s,
  gpus_requested: (row) => row.gpus_requested,
  priority: (row) => row.priority,
  restarts: (row) => row.restarts,
};

export function workloadColumns(workloads: readonly WorkloadAnswer[], units: Units | undefined): FilterColumns {
  const make = (name: AttributeName): FilterColumn | null => {
    const attribute = attributeOf(name);
    if (attribute.kind === "name") {
      const read = WORKLOAD_NAMES[attribute.name];
      if (read) return toNameColumn(workloads, read);
      if (name === "node") return toNameLists(workloads, (row) => row.nodes);
      if (!units || !isOfRules(attribute.name)) return null;
      const keys = workloads.map((row) => row.workload);
      return collectNames(keys, readNames(units, "workload"), readNames(units, attribute.name));
    }
    const read = WORKLOAD_NUMBERS[name];
    if (read) return toNumberColumn(workloads, read);
    return attribute.metric && meanOf(units, "workload", attribute, workloads, (row) => row.workload);
  };
  const searched = () => [
    ...(["workload", "workload_name", "user", "project", "experiment", "partition", "resource_type"] as const).map(
      (name) => toNameColumn(workloads, WORKLOAD_NAMES[name] ?? (() => null)),
    ),
  ];
  const has = (name: AttributeName) => {
    const attribute = attributeOf(name);
    if (attribute.kind === "name") {
      const isOwn = attribute.name in WORKLOAD_NAMES || name === "node";
      return isOwn || (units !== undefined && isOfRules(attribute.name));
    }
    return name in WORKLOAD_NUMBERS || (attribute.metric !== null && units !== undefined);
  };
  return cacheColumns(workloads.length, has, make, searched);
}

/** A workload breaks what any of its units breaks. */
function isOfRules(name: NameAttributeName): boolean {
  return name === "violations" || ruleOfAttribute(name) !== null;
}

/** What a node has of its own; all other names come from its units. */
const NODE_NAMES: readonly NameAttributeName[] = ["node", "node_state", "partition", "machine_type", "rack"];

export function nodeColumns(nodes: readonly NodeAnswer[], units: Units | undefined): FilterColumns {
  const make = (name: AttributeName): FilterColumn | null => {
    const attribute = attributeOf(name);
    if (attribute.kind === "number") {
      return attribute.metric && meanOf(units, "node", attribute, nodes, (row) => row.node);
    }
    switch (attribute.name) {
      case "node":
        return toNameColumn(nodes, (row) => row.node);
      case "node_state":
        return toNameLists(nodes, (row) => (row.is_stale ? [row.state, "stale"] : [row.state]));
      case "partition":
        return toNameLists(nodes, (row) => row.partitions);
      case "machine_type":
        return toNameColumn(nodes, (row) => row.machine_type);
      case "rack":
        return toNameColumn(nodes, (row) => row.rack);
      default:
        if (!units) return null;
        return collectNames(
          nodes.map((row) => row.node),
          readNames(units, "node"),
          readNames(units, attribute.name),
        );
    }
  };
  const searched = () => [
    toNameColumn(nodes, (row) => row.node),
    toNameColumn(nodes, (row) => row.machine_type),
    toNameColumn(nodes, (row) => row.rack),
    toNameColumn(nodes, (row) => row.reason),
    toNameLists(nodes, (row) => row.partitions),
    toNameLists(nodes, (row) => row.features),
  ];
  const has = (name: AttributeName) => {
    const attribute = attributeOf(name);
    if (attribute.kind === "number") return attribute.metric !== null && units !== undefined;
    return NODE_NAMES.includes(attribute.name) || units !== undefined;
  };
  return cacheColumns(nodes.length, has, make, searched);
}

function meanOf<Row>(
  units: Units | undefined,
  group: "workload" | "node",
  attribute: NumberAttribute,
  rows: readonly Row[],
  keyOf: (row: Row) => string,
): NumberColumn | null {
  if (!units) return null;
  const means = aggregateBy(readNames(units, group), readNumbers(units, attribute));
  return toNumberColumn(rows, (row) => means.get(keyOf(row))?.mean);
}

/** The names that the units of each node or workload have, each once. */
export function collectNames(keys: readonly string[], keyOf: NameColumn, { codes, names }: NameColumn): NameLists {
  const placeOf = new Map(keys.map((key, place) => [key, place]));
  const placeOfCode = keyOf.names.map((key) => (key === null ? -1 : (placeOf.get(key) ?? -1)));
  const ends = new Uint32Array(keys.length + 1);
  for (let row = 0; row < codes.length; row += 1) {
    const place = placeOfCode[keyOf.codes[row] ?? 0] ?? -1;
    if (place >= 0 && codes[row] !== 0) ends[place + 1] = (ends[place + 1] ?? 0) + 1;
  }
  for (let place = 0; place < keys.length; place += 1) ends[place + 1] = (ends[place + 1] ?? 0) + (ends[place] ?? 0);
  const fill = new Uint32Array(ends);
  const grouped = new Uint32Array(ends[keys.length] ?? 0);
  for (let row = 0; row < codes.length; row += 1) {
    const place = placeOfCode[keyOf.codes[row] ?? 0] ?? -1;
    if (place < 0 || codes[row] === 0) continue;
    const at = fill[place] ?? 0;
    grouped[at] = codes[row] ?? 0;
    fill[place] = at + 1;
  }
  return dropRepeats(grouped, ends, names);
}

function dropRepeats(codes: Uint32Array, ends: Uint32Array, names: readonly (string | null)[]): NameLists {
  const lastSeen = new Uint32Array(names.length);
  const starts = new Uint32Array(ends.length);
  const kept = new Uint32Array(codes.length);
  let count = 0;
  for (let place = 0; place < ends.length - 1; place += 1) {
    const end = ends[place + 1] ?? 0;
    for (let at = ends[place] ?? 0; at < end; at += 1) {
      const code = codes[at] ?? 0;
      if (lastSeen[code] === place + 1) continue;
      lastSeen[code] = place + 1;
      kept[count] = code;
      count += 1;
    }
    starts[place + 1] = count;
  }
  return { starts, codes: kept.subarray(0, count), names };
}
