import { describe, expect, it } from "vitest";
import type { NameColumn } from "../../../api/columns.ts";
import type { NodeAnswer, WorkloadAnswer } from "../../../api/generated.ts";
import type { Snapshot } from "../../../api/snapshot.ts";
import type { Units } from "../../../data/units.ts";
import { ATTRIBUTES } from "../../../state/attributes.ts";
import { parseWhere } from "../../../state/where.ts";
import { applyWhere, listPassing } from "./apply-where.ts";
import { type FilterColumns, toNameColumn } from "./filter-columns.ts";
import { nodeColumns, unitColumns, workloadColumns } from "./table-columns.ts";

const UNITS = [
  { node: "n1", user: "ada", unit_state: "allocated", workload: "w1", util: 0.2 },
  { node: "n1", user: "ada", unit_state: "allocated", workload: "w1", util: 0.4 },
  { node: "n2", user: "bob", unit_state: "allocated", workload: "w2", util: 0.9 },
  { node: "n2", user: null, unit_state: "free", workload: null, util: 0 },
] as const;

function makeUnits(): Units {
  const none: NameColumn = { codes: new Uint32Array(UNITS.length), names: [null] };
  const columns: Readonly<Record<string, NameColumn>> = {
    node: toNameColumn(UNITS, (unit) => unit.node),
    user: toNameColumn(UNITS, (unit) => unit.user),
    unit_state: toNameColumn(UNITS, (unit) => unit.unit_state),
    workload: toNameColumn(UNITS, (unit) => unit.workload),
    // Held units stand in the partition of their workload; n1 is in two.
    partition: toNameColumn(UNITS, (unit) => (unit.node === "n1" ? "long" : "gpu")),
    node_partitions: toNameColumn(UNITS, (unit) => (unit.node === "n1" ? "gpu + long" : "gpu")),
  };
  const snapshot: Snapshot = {
    inventoryVersion: 1,
    rowCount: UNITS.length,
    names: (column) => columns[column] ?? none,
    numbers: () => new Float64Array(UNITS.length).fill(Number.NaN),
  };
  const util = Float32Array.from(UNITS, (unit) => unit.util);
  const find = (metric: string) => (metric === "gpu_util_ratio" ? util : null);
  return { snapshot, tick: { inventoryVersion: 1, tickVersion: 1, sampledAt: 0, rowCount: UNITS.length, find } };
}

const node = (name: string, more: Partial<NodeAnswer> = {}): NodeAnswer => ({
  cpu_count: null,
  driver_version: null,
  features: [],
  gpu_count: 2,
  gpus_allocated: 2,
  is_stale: false,
  machine_type: "A100-80G",
  memory_bytes: null,
  node: name,
  partitions: ["a100", "all"],
  rack: null,
  reason: null,
  state: "mixed",
  ...more,
});

const NODES = [node("n1"), node("n2", { is_stale: true, state: "down", partitions: ["v100"] }), node("n3")];

function pass(columns: FilterColumns, ...texts: readonly string[]): readonly number[] {
  return [...listPassing(applyWhere(columns, parseWhere(texts, []), ""))];
}

describe("nodes", () => {
  const columns = nodeColumns(NODES, makeUnits());

  it.each([
    [["user:ada"], [0]],
    [["unit_state:free"], [1]],
    [["user:~"], [2]],
    [["partition:all"], [0, 2]],
    [["node_state:stale"], [1]],
    [["node_state:down"], [1]],
    // The mean over held units: the free one's 0 does not count.
    [["gpu_util_ratio:0.8.."], [1]],
    [["gpu_util_ratio:..0.35"], [0]],
  ])("have what their units have: %j", (texts, rows) => {
    expect(pass(columns, ...texts)).toEqual(rows);
  });

  it("count a user once, however many units he holds", () => {
    const users = columns.find("user");
    expect(users && "starts" in users && [...users.starts]).toEqual([0, 1, 2, 2]);
  });

  it("do not wait", () => {
    expect(applyWhere(columns, parseWhere(["wait_s:60.."], []), "").isApplied).toEqual([false]);
  });
});

describe("workloads", () => {
  const workload = (key: string, more: Partial<WorkloadAnswer>) =>
    ({ workload: key, nodes: [], name: null, user: null, wait_s: null, ...more }) as WorkloadAnswer;
  const columns = workloadColumns(
    [
      workload("w1", { user: "ada", wait_s: 10, nodes: ["n1"] }),
      workload("w2", { user: "bob", wait_s: null, nodes: ["n1", "n2"] }),
    ],
    makeUnits(),
  );

  it.each([
    [["user:bob"], [1]],
    [["wait_s:5.."], [0]],
    [["node:n1"], [0, 1]],
    [["node:n2"], [1]],
    [["gpu_util_ratio:0.25..0.35"], [0]],
  ])("have their own and the mean of their units: %j", (texts, rows) => {
    expect(pass(columns, ...texts)).toEqual(rows);
  });
});

describe("whether rows have an attribute", () => {
  it("is known without reading it", () => {
    for (const units of [makeUnits(), undefined]) {
      for (const columns of [nodeColumns(NODES, units), workloadColumns([], units)]) {
        for (const { name } of ATTRIBUTES)
          expect([name, columns.has(name)]).toEqual([name, columns.find(name) !== null]);
      }
    }
  });
});

it("takes a unit of a node in several partitions for one of each", () => {
  const passing = (partition: string) => pass(unitColumns(makeUnits()), `partition:${partition}`);
  expect(passing("gpu")).toEqual([0, 1, 2, 3]);
  expect(passing("long")).toEqual([0, 1]);
});
