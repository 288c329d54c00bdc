// Selects the shown runs and groups them: each group is one line, bar or point. Colors follow the order of groups.

import type { RunExperiment, RunRow, RunTree } from "../../api/generated.ts";
import type { RunGrouping, RunsPage } from "../../state/runs.ts";

/** The page with the shown runs: the selected ones, or the default selection. */
export interface ShownPage extends RunsPage {
  readonly runs: readonly string[];
}

const NO_RUNS: readonly string[] = [];
const MAX_DEFAULT = 24;

/** Runs of the workload that is selected in other views. */
export function listWorkloadRuns(tree: RunTree | undefined, workload: string | null): readonly string[] {
  if (workload === null) return NO_RUNS;
  return tree?.rows.filter((row) => row.workload === workload).map(({ run }) => run) ?? NO_RUNS;
}

/** The selected runs; by default those of the selected workload, or of the newest experiment. */
export function showRuns(page: RunsPage, tree: RunTree | undefined, workloadRuns: readonly string[]): ShownPage {
  if (page.runs !== null) return { ...page, runs: page.runs };
  if (workloadRuns.length > 0 && page.open === null)
    return { ...page, runs: workloadRuns, open: workloadRuns[0] ?? null };
  const newest = tree?.experiments[0]?.workloads.flatMap((workload) => workload.runs) ?? [];
  return { ...page, runs: newest.slice(0, MAX_DEFAULT) };
}

/** In the order of `runs`, without deleted ones. */
export function findRows(tree: RunTree, runs: readonly string[]): readonly RunRow[] {
  const rows = new Map(tree.rows.map((row) => [row.run, row]));
  return runs.flatMap((run) => rows.get(run) ?? []);
}

export interface RunGroup {
  readonly key: string;
  readonly label: string;
  readonly color: string;
  readonly rows: readonly RunRow[];
  /** Such as “cancelled” or “1 of 3 failed”; null: all runs completed. Their values are not comparable. */
  readonly unfinished: string | null;
}

/** Which of the runs did not complete, in words; null: all did. */
export function describeUnfinished(rows: readonly RunRow[]): string | null {
  const states = rows.map(({ state }) => state).filter((state) => state !== "completed");
  if (states.length === 0) return null;
  const names = [...new Set(states)].map((state) => state.replaceAll("_", " ")).join(" or ");
  return rows.length === 1 ? names : `${states.length} of ${rows.length} ${names}`;
}

/** Distinguishable for color-blind readers. */
const COLORS = [
  "light-dark(#1f6feb, #5aa9ff)",
  "light-dark(#b46a00, #ffb454)",
  "light-dark(#11875d, #4fd1a5)",
  "light-dark(#8250df, #b794f6)",
  "light-dark(#cf2f4a, #ff6b81)",
  "light-dark(#0e7490, #4ec9e0)",
  "light-dark(#9a6700, #d9c65a)",
  "light-dark(#57606a, #a9b4c2)",
  "light-dark(#bf3989, #f28cc6)",
  "light-dark(#4d7c0f, #a3d155)",
  "light-dark(#3730a3, #8b93f8)",
  "light-dark(#7c2d12, #d98a66)",
];

export function groupRuns(rows: readonly RunRow[], tree: RunTree, grouping: RunGrouping): readonly RunGroup[] {
  const groupOf = nameGroups(rows, tree, grouping);
  const groups = new Map<string, { label: string; rows: RunRow[] }>();
  for (const row of rows) {
    const { key, label } = groupOf(row);
    const group = groups.get(key);
    if (group) group.rows.push(row);
    else groups.set(key, { label, rows: [row] });
  }
  return [...groups].map(([key, group], at) => ({
    key,
    ...group,
    unfinished: describeUnfinished(group.rows),
    color: COLORS[at % COLORS.length] ?? "var(--accent)",
  }));
}

function nameGroups(rows: readonly RunRow[], tree: RunTree, grouping: RunGrouping) {
  if (grouping === "experiment") {
    return ({ experiment }: RunRow) => ({ key: experiment ?? "", label: experiment ?? "no experiment" });
  }
  if (grouping === "workload") {
    return (row: RunRow) => ({ key: row.executed_with, label: row.group ?? nameRun(row) });
  }
  if (grouping === "repeats") {
    const repeats = new Map<string, { key: string; label: string }>();
    for (const experiment of tree.experiments) {
      experiment.repeats.forEach(({ workloads, label }, at) => {
        // The plan's name where all repeats share it; else the label of what they have in common.
        const names = new Set(
          experiment.workloads.filter(({ id }) => workloads.includes(id)).map(({ group }) => group),
        );
        const [name = null] = names.size === 1 ? names : [];
        for (const id of workloads) repeats.set(id, { key: `${experiment.name ?? ""}/${at}`, label: name ?? label });
      });
    }
    return (row: RunRow) => {
      const repeatGroup = repeats.get(row.executed_with) ?? {
        key: row.executed_with,
        label: row.group ?? nameRun(row),
      };
      // Runs that shared a GPU did different work: each letter is compared with its workloadRuns repeats.
      const letter = parseLetter(row.letter);
      return letter === null
        ? repeatGroup
        : { key: `${repeatGroup.key}#${letter}`, label: `${repeatGroup.label} · ${letter}` };
    };
  }
  const labels = labelRuns(rows);
  return (row: RunRow) => ({ key: row.run, label: labels.get(row.run) ?? row.run });
}

/** `0_A_mps` is run A; null for a run alone. */
function parseLetter(letter: string | null): string | null {
  return /_([A-Z]+)/.exec(letter ?? "")?.[1] ?? null;
}

/** How runs that executed together shared their GPUs; null: they did not. */
export function describeSharing({
  collocation,
  letter,
  device_type,
}: Pick<RunRow, "collocation" | "letter" | "device_type">): string | null {
  if (collocation !== null && collocation !== "-") return collocation;
  // Runs on one GPU have letters; without any other way the driver gives them turns.
  return parseLetter(letter) === null || device_type === null ? null : "time slices";
}

export function nameRun({ name, group, letter, run }: RunRow): string {
  // The workload name of a plan is more specific than the script name.
  return group === null ? (name ?? run) : [group, parseLetter(letter)].filter(Boolean).join(" · ");
}

/** Names of runs, with the params that differ where names are equal, and a number where those are equal, too: #1 started first. */
export function labelRuns(rows: readonly RunRow[]): ReadonlyMap<string, string> {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(nameRun(row), (counts.get(nameRun(row)) ?? 0) + 1);
  const differingParams = [...new Set(rows.flatMap(({ params }) => Object.keys(params)))].filter(
    (name) => new Set(rows.map(({ params }) => params[name])).size > 1,
  );
  const labels = rows.map((row) => {
    const label = nameRun(row);
    if ((counts.get(label) ?? 0) <= 1) return label;
    const params = differingParams
      .filter((name) => row.params[name] !== undefined)
      .map((name) => `${name} ${row.params[name]}`);
    return [label, ...params].join(" · ");
  });
  const numbers = numberRepeats(rows.map((row, at) => ({ name: labels[at] ?? "", startedAt: row.started_at })));
  return new Map(
    rows.map((row, at) => {
      const number = numbers[at] ?? null;
      return [row.run, number === null ? (labels[at] ?? "") : `${labels[at]} #${number}`];
    }),
  );
}

interface Repeat {
  readonly name: string;
  readonly startedAt: number | null;
}

/** A number for each of those with the same name, 1 for the earliest; null where a name occurs once. */
export function numberRepeats(repeats: readonly Repeat[]): readonly (number | null)[] {
  const byName = Map.groupBy(repeats.keys(), (at) => repeats[at]?.name ?? "");
  const numbers: (number | null)[] = repeats.map(() => null);
  for (const places of byName.values()) {
    if (places.length < 2) continue;
    const ordered = places.toSorted((a, b) => (repeats[a]?.startedAt ?? 0) - (repeats[b]?.startedAt ?? 0));
    ordered.forEach((at, index) => {
      numbers[at] = index + 1;
    });
  }
  return numbers;
}

/** Names of the workloads of an experiment: a single run by its label, else by its plan; repeats are numbered. */
export function labelWorkloads(
  { workloads }: RunExperiment,
  rows: ReadonlyMap<string, RunRow>,
): ReadonlyMap<string, string> {
  const singles = labelRuns(
    workloads.flatMap(({ runs }) => (runs.length === 1 ? (rows.get(runs[0] ?? "") ?? []) : [])),
  );
  const names = workloads.map(({ group }) => group ?? "workload");
  const shared = workloads.map((workload, at) => ({
    // A single run has its own label.
    name: workload.runs.length === 1 ? workload.id : (names[at] ?? ""),
    startedAt: Math.min(...workload.runs.map((run) => rows.get(run)?.started_at ?? Number.POSITIVE_INFINITY)),
  }));
  const numbers = numberRepeats(shared);
  return new Map(
    workloads.map(({ id, runs }, at) => {
      const single = runs.length === 1 ? singles.get(runs[0] ?? "") : undefined;
      return [id, single ?? (numbers[at] == null ? (names[at] ?? "") : `${names[at]} #${numbers[at]}`)];
    }),
  );
}
