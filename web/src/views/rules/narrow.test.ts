import { describe, expect, it } from "vitest";
import type { MuteAnswer, ViolationAnswer } from "../../api/generated.ts";
import { INITIAL_RULES_PAGE, type RulesPage } from "../../state/violations.ts";
import { isHardwareViolation, narrow, severityOrder, stateOf, sumGpuHours } from "./narrow.ts";

const MUTE: MuteAnswer = {
  key: "m",
  rule: "idle",
  workload: null,
  reason: "planned upgrade",
  author: "ann",
  created_at: 0,
  expires_at: 9,
};

function violation(changes: Partial<ViolationAnswer>): ViolationAnswer {
  return {
    rule: "idle",
    rule_name: "Idle",
    severity: "warning",
    workload: "slurm:1",
    workload_name: "train",
    user: "ann",
    project: "nlp",
    partition: "main",
    node: null,
    units: ["n1:0"],
    gpus: 1,
    since: 0,
    until: null,
    gpu_hours: 1,
    values: {},
    readings: "gpu_util p95 3%",
    mute: null,
    ...changes,
  };
}

const ALL = [
  violation({}),
  violation({ rule: "stall", rule_name: "Stalled", severity: "critical", gpu_hours: 3 }),
  violation({ workload: "slurm:2", user: "bob", until: 5, gpu_hours: 2 }),
  violation({ workload: "slurm:3", user: null, project: null, workload_name: null, mute: MUTE, gpu_hours: 0.5 }),
];

function shown(changes: Partial<RulesPage>) {
  return narrow(ALL, { ...INITIAL_RULES_PAGE, ...changes });
}

describe("narrowing violations", () => {
  it("shows all without filters", () => {
    expect(shown({}).rows).toEqual(ALL);
  });

  it("gives each violation one state", () => {
    expect(ALL.map(stateOf)).toEqual(["now", "now", "past", "muted"]);
    expect(shown({ state: "past" }).rows).toEqual([ALL[2]]);
    expect(shown({ state: "muted" }).rows).toEqual([ALL[3]]);
  });

  it("joins values of one filter by or, filters by and", () => {
    expect(shown({ users: ["ann", "bob"] }).rows).toHaveLength(3);
    expect(shown({ users: ["ann"], rules: ["stall"] }).rows).toEqual([ALL[1]]);
    expect(shown({ users: [""] }).rows).toEqual([ALL[3]]);
    expect(shown({ severities: ["critical"], users: ["bob"] }).rows).toEqual([]);
    expect(shown({ rules: ["not-there"] }).rows).toEqual([]);
  });

  it("searches all words in all columns", () => {
    expect(shown({ text: "TRAIN stalled" }).rows).toEqual([ALL[1]]);
    expect(shown({ text: "upgrade" }).rows).toEqual([ALL[3]]);
    expect(shown({ text: "train nobody" }).rows).toEqual([]);
  });

  it("counts what another value of the same filter would show", () => {
    const { counts, anyUser } = shown({ users: ["ann"] });
    expect(Object.fromEntries(counts.user)).toEqual({ ann: 2, bob: 1, "": 1 });
    expect(Object.fromEntries(counts.rule)).toEqual({ idle: 1, stall: 1 });
    expect(Object.fromEntries(counts.state)).toEqual({ now: 2 });
    expect(anyUser).toEqual(ALL);
  });
});

describe("violations by hardware", () => {
  const fault = violation({ workload: "node:n1", workload_name: null, node: "n1", user: null, project: null });
  const silentSource = violation({ workload: "source:slurm", workload_name: null, user: null, project: null });

  it("have no user, and are found by node name", () => {
    const { rows, counts, anyUser } = narrow([...ALL, fault, silentSource], INITIAL_RULES_PAGE);
    expect(rows).toHaveLength(ALL.length + 2);
    expect(counts.user).toEqual(narrow(ALL, INITIAL_RULES_PAGE).counts.user);
    expect(anyUser).toEqual(ALL);
    expect(narrow([...ALL, fault], { ...INITIAL_RULES_PAGE, text: "node:n1" }).rows).toEqual([fault]);
    expect([fault, silentSource, violation({})].map(isHardwareViolation)).toEqual([true, true, false]);
  });
});

describe("sums", () => {
  it("count a workload once, by its longest violation, as a lower bound", () => {
    expect(sumGpuHours(ALL, ({ user }) => user)).toEqual([
      { name: "ann", gpuHours: 3, workloads: 1, isAtLeast: true },
      { name: "bob", gpuHours: 2, workloads: 1, isAtLeast: false },
      { name: "", gpuHours: 0.5, workloads: 1, isAtLeast: false },
    ]);
    expect(sumGpuHours([], ({ user }) => user)).toEqual([]);
  });
});

it("orders severities, the unknown last", () => {
  expect(["info", "odd", "critical", "warning"].sort((a, b) => severityOrder(a) - severityOrder(b))).toEqual([
    "critical",
    "warning",
    "info",
    "odd",
  ]);
});
