// Which violations are shown, and how many there would be with another choice. Pure.

import type { ViolationAnswer } from "../../api/generated.ts";
import { makeSearch } from "../../base/search.ts";
import { type RulesPage, SEVERITIES, type ViolationState } from "../../state/violations.ts";

export type Dimension = "rule" | "severity" | "user" | "project" | "state" | "text";

export interface Narrowed {
  readonly rows: readonly ViolationAnswer[];
  /** By value, how many rows there are that only this dimension may turn away. */
  readonly counts: Readonly<Record<Exclude<Dimension, "text">, ReadonlyMap<string, number>>>;
  /** Those whom only the choice of users, or of projects, may turn away. */
  readonly anyUser: readonly ViolationAnswer[];
  readonly anyProject: readonly ViolationAnswer[];
}

/** Three states, each violation is in one of them. */
export function stateOf({ mute, until }: Pick<ViolationAnswer, "mute" | "until">): Exclude<ViolationState, "all"> {
  if (mute) return "muted";
  return until === null ? "now" : "past";
}

const SOURCE = "source:";

/** Whether a node, a GPU of it, or a source broke the rule: nobody's workload. */
export function isOfHardware({ node, workload }: Pick<ViolationAnswer, "node" | "workload">): boolean {
  return node !== null || workload.startsWith(SOURCE);
}

export function narrow(violations: readonly ViolationAnswer[], page: RulesPage): Narrowed {
  const isMeant = makeSearch(page.text, listWords, readNamed);
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
  for (const each of violations) {
    const failed = findFailed(each, page, isMeant);
    if (failed === null) continue;
    if (failed === "none") rows.push(each);
    const isOwned = !isOfHardware(each);
    if (isOwned && (failed === "none" || failed === "user")) anyUser.push(each);
    if (isOwned && (failed === "none" || failed === "project")) anyProject.push(each);
    for (const dimension of ["rule", "severity", "user", "project", "state"] as const) {
      if (failed !== "none" && failed !== dimension) continue;
      if (!isOwned && (dimension === "user" || dimension === "project")) continue;
      const value = nameIn(each, dimension);
      counts[dimension].set(value, (counts[dimension].get(value) ?? 0) + 1);
    }
  }
  return { rows, counts, anyUser, anyProject };
}

function nameIn(each: ViolationAnswer, dimension: Exclude<Dimension, "text">): string {
  switch (dimension) {
    case "rule":
      return each.rule;
    case "severity":
      return each.severity;
    case "user":
      return each.user ?? "";
    case "project":
      return each.project ?? "";
    case "state":
      return stateOf(each);
  }
}

/** The one dimension that turns a violation away; null where there are several. */
function findFailed(
  each: ViolationAnswer,
  page: RulesPage,
  isMeant: (each: ViolationAnswer) => boolean,
): Dimension | "none" | null {
  const isFit = (chosen: readonly string[], value: string) => chosen.length === 0 || chosen.includes(value);
  const failed: Dimension[] = [];
  if (!isFit(page.rules, each.rule)) failed.push("rule");
  if (!isFit(page.severities, each.severity)) failed.push("severity");
  if (!isFit(page.users, each.user ?? "")) failed.push("user");
  if (!isFit(page.projects, each.project ?? "")) failed.push("project");
  if (page.state !== "all" && page.state !== stateOf(each)) failed.push("state");
  if (!isMeant(each)) failed.push("text");
  return failed.length > 1 ? null : (failed[0] ?? "none");
}

function listWords(each: ViolationAnswer): readonly (string | null | undefined)[] {
  const { rule, rule_name, workload, workload_name, node, user, project, partition, readings, mute } = each;
  return [rule, rule_name, workload, workload_name, node, user, project, partition, readings, mute?.reason];
}

function readNamed(each: ViolationAnswer, name: string): string | number | null | undefined {
  const { rule, severity, workload, node, user, project, partition, gpus, gpu_hours } = each;
  const named = { rule, severity, workload, node, user, project, partition, gpus, gpu_hours, state: stateOf(each) };
  return Object.hasOwn(named, name) ? named[name as keyof typeof named] : undefined;
}

export interface Sum {
  /** Empty: not known. */
  readonly name: string;
  readonly gpuHours: number;
  readonly workloads: number;
  /** Some workload broke several rules, at the same time or not: the sum is at least this. */
  readonly isAtLeast: boolean;
}

/**
 * GPU-hours by name, most first. The rows do not tell when rules were broken at the same time: of a workload with several the
 * longest counts.
 */
export function sumUp(
  rows: readonly ViolationAnswer[],
  nameOf: (row: ViolationAnswer) => string | null,
): readonly Sum[] {
  const byName = new Map<string, Map<string, { hours: number; rules: number }>>();
  for (const row of rows) {
    const name = nameOf(row) ?? "";
    const workloads = byName.get(name) ?? new Map<string, { hours: number; rules: number }>();
    byName.set(name, workloads);
    const held = workloads.get(row.workload);
    workloads.set(row.workload, {
      hours: Math.max(held?.hours ?? 0, row.gpu_hours),
      rules: (held?.rules ?? 0) + 1,
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
