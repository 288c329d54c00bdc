import { describe, expect, it } from "vitest";
import { emptyNames, type NameColumn } from "../../../api/columns.ts";
import type { UnitNameColumn, UnitNumberColumn } from "../../../api/snapshot.ts";
import type { Units } from "../../../data/units.ts";
import { alignWaste } from "../../../data/waste.ts";
import { encodeGroup, encodeUnits } from "../../../state/selection.ts";
import { listSelectedRows, markSelectedRows } from "./selected-rows.ts";
import { describeSelection } from "./selection-words.ts";
import { totalFacts } from "./total-facts.ts";
import { computeTotals, listLargest } from "./unit-totals.ts";

const NOW = 10 * 3_600_000;

function names(values: readonly (string | null)[]): NameColumn {
  const names = [null, ...new Set(values.filter((value) => value !== null))];
  return { codes: Uint32Array.from(values, (value) => names.indexOf(value)), names: names };
}

/** Two GPUs of ada's, one of bob's, a free one, and one that bob asks for. */
function makeUnits(): Units {
  const columns: Partial<Record<UnitNameColumn, NameColumn>> = {
    unit: names(["n1:0", "n1:1", "n2:0", "n2:1", "slurm:9#0"]),
    node: names(["n1", "n1", "n2", "n2", null]),
    user: names(["ada", "ada", "bob", null, "bob"]),
    project: names(["nlp", "nlp", "nlp", null, "cv"]),
    workload: names(["slurm:1", "slurm:1", "slurm:2", null, "slurm:9"]),
    unit_state: names(["allocated", "allocated", "allocated", "free", "requested"]),
  };
  const numbers: Partial<Record<UnitNumberColumn, readonly number[]>> = {
    started_at: [NOW - 7_200_000, NOW - 7_200_000, NOW - 3_600_000, Number.NaN, Number.NaN],
    submitted_at: [0, 0, 0, Number.NaN, NOW - 90_000],
    power_limit_watts: [400, 400, 400, 400, Number.NaN],
  };
  const metrics: Readonly<Record<string, Float32Array>> = {
    gpu_util_ratio: Float32Array.of(0.5, 1, Number.NaN, 0, Number.NaN),
    power_watts: Float32Array.of(300, 200, 100, 50, Number.NaN),
  };
  return {
    snapshot: {
      inventoryVersion: 1,
      rowCount: 5,
      names: (column) => columns[column] ?? emptyNames(5),
      numbers: (column) => Float64Array.from(numbers[column] ?? new Array(5).fill(Number.NaN)),
    },
    tick: {
      inventoryVersion: 1,
      tickVersion: 1,
      sampledAt: NOW,
      rowCount: 5,
      find: (metric) => metrics[metric] ?? null,
    },
  };
}

const waste = {
  rowCount: 4,
  unit: names(["n1:0", "n1:1", "n1:1", "gone:0"]),
  workload: names(["slurm:1", "slurm:1", "slurm:0", "slurm:1"]),
  heldHours: Float64Array.of(2, 2, 5, 9),
  wastedHours: Float64Array.of(0, 1.5, 5, 9),
};

describe("the rows of a selection", () => {
  const units = makeUnits();

  it("are those it names, whatever kind it is of", () => {
    expect(listSelectedRows(units, null)).toEqual([]);
    expect(listSelectedRows(units, { kind: "unit", key: "n2:1" })).toEqual([3]);
    expect(listSelectedRows(units, { kind: "node", key: "n1" })).toEqual([0, 1]);
    expect(listSelectedRows(units, { kind: "workload", key: "slurm:2" })).toEqual([2]);
    expect(listSelectedRows(units, { kind: "workload", key: "nobody" })).toEqual([]);
    expect(listSelectedRows(units, { kind: "units", key: encodeUnits(["n2:1", "n1:0", "gone:3"]) })).toEqual([0, 3]);
    expect([...(markSelectedRows(units, { kind: "node", key: "n2" }) ?? [])]).toEqual([0, 0, 1, 1, 0]);
  });

  it("of a group are those that have all of its steps, in its scope", () => {
    const group = (scope: "all" | "gpus" | "requested", ...steps: readonly (readonly [string, string | null])[]) => ({
      kind: "group" as const,
      key: encodeGroup({ scope, steps: steps.map(([attribute, name]) => ({ attribute, name })) }),
    });
    expect(listSelectedRows(units, group("gpus", ["project", "nlp"]))).toEqual([0, 1, 2]);
    expect(listSelectedRows(units, group("gpus", ["project", "nlp"], ["user", "bob"]))).toEqual([2]);
    expect(listSelectedRows(units, group("gpus", ["project", null]))).toEqual([3]);
    expect(listSelectedRows(units, group("requested", ["user", "bob"]))).toEqual([4]);
    expect(listSelectedRows(units, group("all", ["user", "bob"]))).toEqual([2, 4]);
    expect(describeSelection(group("gpus", ["project", "nlp"], ["user", null]))).toBe("nlp › no user");
  });
});

describe("what units add up to", () => {
  const units = makeUnits();
  const all = [0, 1, 2, 3, 4];

  it("counts a value only where there is one, and use only where somebody holds the unit", () => {
    const totals = computeTotals(units, all, NOW, null);
    expect(totals).toMatchObject({ units: 5, gpus: 4, workloads: 3, users: 2, nodes: 2 });
    expect(totals.utilRatio).toBeCloseTo(0.75);
    expect(totals.powerWatts).toBe(650);
    expect(totals.powerLimitWatts).toBe(1600);
    expect(totals.heldHours).toBeCloseTo(2 + 2 + 1);
    expect(totals.longestWaitS).toBeCloseTo(90);
    expect([totals.wastedHours, totals.recentHours]).toEqual([null, null]);
  });

  it("ignores units without values", () => {
    const totals = computeTotals(units, [], NOW, null);
    expect(totals.utilRatio).toBeNull();
    expect(totalFacts(totals, 0.5).filter(({ value }) => value !== null)).toEqual([]);
  });

  it("wastes what its present holders wasted", () => {
    const totals = computeTotals(units, [0, 1, 2], NOW, alignWaste(units.snapshot, waste));
    expect(totals.recentHours).toBeCloseTo(4);
    expect(totals.wastedHours).toBeCloseTo(1.5);
    const facts = new Map(totalFacts(totals, 0.74).map(({ name, value }) => [name, value]));
    expect(facts.get("wasted in 24 h")).toBe("1.5 of 4.0\u00a0GPU-hours");
    expect(facts.get("utilization")).toBe("75\u00a0%, cluster 74\u00a0%");
  });

  it("lists the largest first", () => {
    expect(listLargest(units, all, "workload", "workload_name", 2)).toEqual([
      { key: "slurm:1", title: "slurm:1", units: 2 },
      { key: "slurm:2", title: "slurm:2", units: 1 },
    ]);
  });
});
