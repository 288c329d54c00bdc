// Which runs are shown, and what is one line, bar or point: each run, or runs taken together. Colors go by the place among
// what is shown.

import type { RunRow, RunTree } from "../../api/generated.ts";
import type { RunGrouping, RunsPage } from "../../state/runs.ts";

/** The page with the runs in sight: those chosen, or those shown where nobody chose. */
export interface ShownPage extends RunsPage {
  readonly runs: readonly string[];
}

const NO_RUNS: readonly string[] = [];
const MOST_AT_FIRST = 24;

/** The runs that are, or were tracked in, the workload that is selected in the other views. */
export function listOwnRuns(tree: RunTree | undefined, workload: string | null): readonly string[] {
  if (workload === null) return NO_RUNS;
  return tree?.rows.filter((row) => row.workload === workload).map(({ run }) => run) ?? NO_RUNS;
}

/** Where nothing is chosen: those of the selected workload, or the newest experiment, so that the page is never bare. */
export function showRuns(page: RunsPage, tree: RunTree | undefined, own: readonly string[]): ShownPage {
  if (page.runs !== null) return { ...page, runs: page.runs };
  if (own.length > 0 && page.open === null) return { ...page, runs: own, open: own[0] ?? null };
  const newest = tree?.experiments[0]?.workloads.flatMap((workload) => workload.runs) ?? [];
  return { ...page, runs: newest.slice(0, MOST_AT_FIRST) };
}

/** In the order of `runs`; those that are gone are left out. */
export function findRows(tree: RunTree, runs: readonly string[]): readonly RunRow[] {
  const rows = new Map(tree.rows.map((row) => [row.run, row]));
  return runs.flatMap((run) => rows.get(run) ?? []);
}

export interface RunGroup {
  readonly key: string;
  readonly label: string;
  readonly color: string;
  readonly rows: readonly RunRow[];
}

/** Told apart by color-blind readers, too; the same in light and dark. */
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
  const named = nameGroups(rows, tree, grouping);
  const groups = new Map<string, { label: string; rows: RunRow[] }>();
  for (const row of rows) {
    const { key, label } = named(row);
    const group = groups.get(key);
    if (group) group.rows.push(row);
    else groups.set(key, { label, rows: [row] });
  }
  return [...groups].map(([key, group], at) => ({
    key,
    ...group,
    color: COLORS[at % COLORS.length] ?? "var(--accent)",
  }));
}

function nameGroups(rows: readonly RunRow[], tree: RunTree, grouping: RunGrouping) {
  if (grouping === "experiment") {
    return ({ experiment }: RunRow) => ({ key: experiment ?? "", label: experiment ?? "no experiment" });
  }
  if (grouping === "workload") {
    return (row: RunRow) => ({ key: row.executed_with, label: row.group ?? sayRun(row) });
  }
  if (grouping === "repeats") {
    const repeats = new Map<string, { key: string; label: string }>();
    for (const experiment of tree.experiments) {
      experiment.repeats.forEach(({ workloads, label }, at) => {
        // The plan's own name, where all repeats have the same; else what they have in common in full.
        const names = new Set(
          experiment.workloads.filter(({ id }) => workloads.includes(id)).map(({ group }) => group),
        );
        const [name = null] = names.size === 1 ? names : [];
        for (const id of workloads) repeats.set(id, { key: `${experiment.name ?? ""}/${at}`, label: name ?? label });
      });
    }
    return (row: RunRow) => {
      const known = repeats.get(row.executed_with) ?? { key: row.executed_with, label: row.group ?? sayRun(row) };
      // Runs that shared a GPU did different work: each letter is compared with its own repeats.
      const letter = sayLetter(row.letter);
      return letter === null ? known : { key: `${known.key}#${letter}`, label: `${known.label} · ${letter}` };
    };
  }
  const labels = sayApart(rows);
  return (row: RunRow) => ({ key: row.run, label: labels.get(row.run) ?? row.run });
}

/** `0_A_mps` is run A; a run alone has no letter that tells anything. */
function sayLetter(letter: string | null): string | null {
  return /_([A-Z]+)/.exec(letter ?? "")?.[1] ?? null;
}

/** How runs that executed together shared their GPUs; null: they did not, or in turns. */
export function saySharing({ collocation }: RunRow): string | null {
  return collocation === null || collocation === "-" ? null : collocation;
}

export function sayRun({ name, group, letter, run }: RunRow): string {
  // A plan's name of a workload says more than the script's, which many share.
  return group === null ? (name ?? run) : [group, sayLetter(letter)].filter(Boolean).join(" · ");
}

/** Names of runs, with the params that tell them apart where names do not. */
export function sayApart(rows: readonly RunRow[]): ReadonlyMap<string, string> {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(sayRun(row), (counts.get(sayRun(row)) ?? 0) + 1);
  const telling = [...new Set(rows.flatMap(({ params }) => Object.keys(params)))].filter(
    (name) => new Set(rows.map(({ params }) => params[name])).size > 1,
  );
  const used = new Map<string, number>();
  return new Map(
    rows.map((row) => {
      let label = sayRun(row);
      if ((counts.get(label) ?? 0) > 1) {
        const params = telling
          .filter((name) => row.params[name] !== undefined)
          .map((name) => `${name} ${row.params[name]}`);
        label = [label, ...params].join(" · ");
        const times = (used.get(label) ?? 0) + 1;
        used.set(label, times);
        if (times > 1) label = `${label} (${times})`;
      }
      return [row.run, label];
    }),
  );
}
