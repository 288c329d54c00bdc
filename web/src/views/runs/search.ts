// Searches runs: words in names, state or params; comparisons such as `batch=64` or `loss<0.5` with a param, result or quantity.

import type { RunRow } from "../../api/generated.ts";
import { makeSearch } from "../../base/search.ts";
import { nameRun } from "./groups.ts";
import { listQuantities } from "./quantities.ts";

export function findRuns(rows: readonly RunRow[], text: string): ReadonlySet<string> {
  const quantities = listQuantities(rows);
  const read = (row: RunRow, name: string) =>
    textOf(row, name) ??
    quantities.find(({ key, title }) => nameOf(key) === name || title.toLowerCase() === name)?.of(row);
  const test = makeSearch(text, listTexts, read);
  return new Set(rows.filter(test).map(({ run }) => run));
}

function nameOf(key: string): string {
  return key.slice(key.indexOf(":") + 1).toLowerCase();
}

function textOf(row: RunRow, name: string): string | undefined {
  const facts: Readonly<Record<string, string | null>> = {
    state: row.state,
    user: row.user,
    host: row.host,
    experiment: row.experiment,
    group: row.group,
    workload: row.workload,
    collocation: row.collocation,
  };
  const record = { ...row.tags, ...row.params };
  const key = Object.keys(record).find((field) => field.toLowerCase() === name);
  return (key === undefined ? facts[name] : record[key]) ?? undefined;
}

function listTexts(row: RunRow): readonly (string | null)[] {
  const named = [nameRun(row), row.run, row.workload, row.experiment, row.group, row.user, row.host, row.state];
  const params = Object.entries({ ...row.params, ...row.tags }).map(([name, value]) => `${name} ${value}`);
  return [...named, row.cause, row.collocation, ...params];
}
