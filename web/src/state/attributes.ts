// The attributes of units, by the names that links and view documents use: title, kind (name or number) and unit. Holds
// no values.

import { METRICS, type Quantity } from "../base/catalogue.ts";
import { RULE_STATES, type RuleAttributeName, ruleOfAttribute } from "./rules.ts";

/** Statistics over the life of the workload that holds the unit; without one, the current value. */
export const STATISTICS = ["mean", "p5", "p50", "p95", "min", "max"] as const;
export type Statistic = (typeof STATISTICS)[number];

/** Sampled metrics, with statistics over a workload's life. Missing for units that are not allocated. */
export type MetricName = keyof typeof METRICS;

type Titled = readonly [title: string, unit: Quantity];

const NUMBERS = {
  wait_s: ["Waiting time", "seconds"],
  run_s: ["Running time", "seconds"],
  time_limit_s: ["Time limit", "seconds"],
  gpus_requested: ["GPUs of the workload", "count"],
  priority: ["Priority", "count"],
  restarts: ["Restarts", "count"],
  holders: ["Workloads on the GPU", "count"],
  memory_bytes: ["Memory size", "bytes"],
  power_limit_watts: ["Power limit", "watts"],
} as const satisfies Readonly<Record<string, Titled>>;

const NAMES = {
  unit_state: "State",
  partition: "Partition",
  node_partitions: "Node's partitions",
  project: "Project",
  user: "User",
  workload: "Workload",
  workload_name: "Workload's name",
  workload_state: "Workload's state",
  workload_kind: "Workload kind",
  experiment: "Experiment",
  resource_type: "Resource type",
  machine_type: "Machine type",
  node: "Node",
  node_state: "Node's state",
  rack: "Rack",
  unit: "Unit",
  kind: "Kind of unit",
  mig_profile: "MIG profile",
  qos: "Quality of service",
  pending_reason: "Waiting reason",
  waits_for: "Waits for",
  allocation_source: "Allocation source",
  violations: "Rules broken",
  free_use: "Use of free GPUs",
  unit_health: "Health",
} as const satisfies Readonly<Record<string, string>>;
export type NameAttributeName = keyof typeof NAMES | RuleAttributeName;

export type AttributeName = NameAttributeName | keyof typeof NUMBERS | MetricName | `${MetricName}:${Statistic}`;

export interface NumberAttribute {
  readonly kind: "number";
  readonly name: AttributeName;
  readonly title: string;
  readonly unit: Quantity;
  /** Null: not a sampled metric. */
  readonly metric: MetricName | null;
  /** Null: the current value. */
  readonly statistic: Statistic | null;
}

export interface NameAttribute {
  readonly kind: "name";
  readonly name: NameAttributeName;
  readonly title: string;
  /** All possible values, in order; null: open-ended. */
  readonly values: readonly string[] | null;
}

export type Attribute = NumberAttribute | NameAttribute;

export const WORKLOAD_STATES = [
  "running",
  "waiting",
  "suspended",
  "completed",
  "failed",
  "cancelled",
  "timeout",
  "out_of_memory",
  "node_failed",
  "preempted",
  "unknown",
] as const;

const VALUES: Partial<Readonly<Record<NameAttributeName, readonly string[]>>> = {
  unit_state: ["allocated", "free", "unavailable", "stale", "requested"],
  free_use: ["usable", "stranded"],
  unit_health: ["ok", "silent", "faulty"],
  workload_state: WORKLOAD_STATES,
  node_state: ["idle", "mixed", "allocated", "draining", "drained", "down", "unknown", "stale"],
};

const STATISTIC_WORDS: Readonly<Record<Statistic, string>> = {
  mean: "mean",
  p5: "p5",
  p50: "p50",
  p95: "p95",
  min: "least",
  max: "most",
};

function listAll(): readonly Attribute[] {
  const keysOf = <T extends object>(table: T) => Object.keys(table) as (keyof T & string)[];
  const metrics = keysOf(METRICS).flatMap((metric): readonly NumberAttribute[] => {
    const { label: title, unit } = METRICS[metric];
    const of = { kind: "number", unit, metric } as const;
    const life = STATISTICS.map((statistic) => ({
      ...of,
      name: `${metric}:${statistic}` as const,
      title: `${title}, ${STATISTIC_WORDS[statistic]} of life`,
      statistic,
    }));
    return [{ ...of, name: metric, title, statistic: null }, ...life];
  });
  const numbers = keysOf(NUMBERS).map((name): NumberAttribute => {
    const [title, unit] = NUMBERS[name];
    return { kind: "number", name, title, unit, metric: null, statistic: null };
  });
  const names = keysOf(NAMES).map(
    (name): NameAttribute => ({ kind: "name", name, title: NAMES[name], values: VALUES[name] ?? null }),
  );
  return [...names, ...metrics, ...numbers];
}

/** Names first, then metrics each with its statistics, then other numbers. */
export const ATTRIBUTES: readonly Attribute[] = listAll();

const BY_NAME: ReadonlyMap<string, Attribute> = new Map(ATTRIBUTES.map((attribute) => [attribute.name, attribute]));

/** Each rule has an attribute, created once, so that it is the same object everywhere. */
const ruleAttributes = new Map<string, NameAttribute>();

export function findAttribute(name: string): Attribute | null {
  const rule = ruleOfAttribute(name);
  if (rule === null) return BY_NAME.get(name) ?? null;
  const cached = ruleAttributes.get(rule);
  const attribute: NameAttribute = cached ?? {
    kind: "name",
    name: name as RuleAttributeName,
    title: `Rule ${rule}`,
    values: RULE_STATES,
  };
  ruleAttributes.set(rule, attribute);
  return attribute;
}

/** For names that are valid by their type. */
export function attributeOf(name: AttributeName): Attribute {
  const attribute = findAttribute(name);
  if (attribute === null) throw new Error(`There is no attribute named ${name}`);
  return attribute;
}
