// Filters violations, and counts how many another choice of each filter would show. Pure.

import type { ViolationAnswer } from "../../api/generated.ts";
import { makeSearch } from "../../base/search.ts";
import { type RulesPage, SEVERITIES, type ViolationState } from "../../state/violations.ts";

export type Dimension = "rule" | "severity" | "user" | "project" | "state" | "text";

export interface Narrowed {
  readonly rows: readonly ViolationAnswer[];
  /** By value: rows that match all other filters. */
  readonly counts: Readonly<Record<Exclude<Dimension, "text">, ReadonlyMap<string, number>>>;
  /** Rows that match all filters except that of users, or of projects. */
  readonly anyUser: readonly ViolationAnswer[];
  readonly anyProject: readonly ViolationAnswer[];
}

export function stateOf({ mute, until }: Pick<ViolationAnswer, "mute" | "until">): Exclude<ViolationState, "all"> {
  if (mute) return "muted";
  return until === null ? "now" : "past";
}

const SOURCE = "source:";

/** Whether a node, one of its GPUs, or a source broke the rule, not a workload. */
export function isHardwareViolation({ node, workload }: Pick<ViolationAnswer, "node" | "workload">): boolean {
  return node !== null || workload.startsWith(SOURCE);
}

export function narrow(violations: readonly ViolationAnswer[], page: RulesPage): Narrowed {
  const matchesText = makeSearch(page.text, listTexts, readNamed);
  const rows: ViolationAnswer[] = [];
  const anyUser: ViolationAnswer[] = [];
  const anyProject: ViolationAnswer[] = [];
  const counts = {
    rule: new Map<string, number>(),
    severity: new Map<string, number>(),
    user: new Map<string, number>(),
    project: new Map<string, number>(),
    state: new Map<string, number>(),
  };
  for (const violation of violations) {
    const failed = findFailedFilter(violation, page, matchesText);
    if (failed === null) continue;
    if (failed === "none") rows.push(violation);
    const isOwned = !isHardwareViolation(violation);
    if (isOwned && (failed === "none" || failed === "user")) anyUser.push(violation);
    if (isOwned && (failed === "none" || failed === "project")) anyProject.push(violation);
    for (const dimension of ["rule", "severity", "user", "project", "state"] as const) {
      if (failed !== "none" && failed !== dimension) continue;
      if (!isOwned && (dimension === "user" || dimension === "project")) continue;
      const value = valueIn(violation, dimension);
      counts[dimension].set(value, (counts[dimension].get(value) ?? 0) + 1);
    }
  }
  return { rows, counts, anyUser, anyProject };
}

function valueIn(violation: ViolationAnswer, dimension: Exclude<Dimension, "text">): string {
  switch (dimension) {
    case "rule":
      return violation.rule;
    case "severity":
      return violation.severity;
    case "user":
      return violation.user ?? "";
    case "project":
      return violation.project ?? "";
    case "state":
      return stateOf(violation);
  }
}

/** The only filter that a violation does not match; null where there are several. */
function findFailedFilter(
  violation: ViolationAnswer,
  page: RulesPage,
  matchesText: (violation: ViolationAnswer) => boolean,
): Dimension | "none" | null {
  const isAllowed = (chosen: readonly string[], value: string) => chosen.length === 0 || chosen.includes(value);
  const failed: Dimension[] = [];
  if (!isAllowed(page.rules, violation.rule)) failed.push("rule");
  if (!isAllowed(page.severities, violation.severity)) failed.push("severity");
  if (!isAllowed(page.users, violation.user ?? "")) failed.push("user");
  if (!isAllowed(page.projects, violation.project ?? "")) failed.push("project");
  if (page.state !== "all" && page.state !== stateOf(violation)) failed.push("state");
  if (!matchesText(violation)) failed.push("text");
  return failed.length > 1 ? null : (failed[0] ?? "none");
}

function listTexts(violation: ViolationAnswer): readonly (string | null | undefined)[] {
  const { rule, rule_name, workload, workload_name, node, user, project, partition, readings, mute } = violation;
  return [rule, rule_name, workload, workload_name, node, user, project, partition, readings, mute?.reason];
}

function readNamed(violation: ViolationAnswer, name: string): string | number | null | undefined {
  const { rule, severity, workload, node, user, project, partition, gpus, gpu_hours } = violation;
  const named = {
    rule,
    severity,
    workload,
    node,
    user,
    project,
    partition,
    gpus,
    gpu_hours,
    state: stateOf(violation),
  };
  return Object.hasOwn(named, name) ? named[name as keyof typeof named] : undefined;
}

export interface Sum {
  /** Empty: unknown. */
  readonly name: string;
  readonly gpuHours: number;
  readonly workloads: number;
  /** A workload broke several rules: the sum is a lower bound. */
  readonly isAtLeast: boolean;
}

/**
 * GPU-hours by name, most first. Rows do not show whether a workload broke several rules at the same time, so only its longest
 * violation counts.
 */
export function sumGpuHours(
  rows: readonly ViolationAnswer[],
  nameOf: (row: ViolationAnswer) => string | null,
): readonly Sum[] {
  const byName = new Map<string, Map<string, { hours: number; rules: number }>>();
  for (const row of rows) {
    const name = nameOf(row) ?? "";
    const workloads = byName.get(name) ?? new Map<string, { hours: number; rules: number }>();
    byName.set(name, workloads);
    const previous = workloads.get(row.workload);
    workloads.set(row.workload, {
      hours: Math.max(previous?.hours ?? 0, row.gpu_hours),
      rules: (previous?.rules ?? 0) + 1,
    });
  }
  const sums = [...byName].map(([name, workloads]) => ({
    name,
    gpuHours: [...workloads.values()].reduce((sum, { hours }) => sum + hours, 0),
    workloads: workloads.size,
    isAtLeast: [...workloads.values()].some(({ rules }) => rules > 1),
  }));
  return sums.sort((a, b) => b.gpuHours - a.gpuHours || (a.name < b.name ? -1 : 1));
}

/** Most severe first. */
export function severityOrder(severity: string): number {
  const place = (SEVERITIES as readonly string[]).indexOf(severity);
  return place < 0 ? SEVERITIES.length : place;
}
