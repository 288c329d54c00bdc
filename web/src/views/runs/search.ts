// Which runs a search means. Words must all be found in a run's names, state or params; `batch=64`, `loss<0.5` compare a param,
// a result or a quantity of the run with a value.

import type { RunRow } from "../../api/generated.ts";
import { sayRun } from "./groups.ts";
import { listQuantities, type RunQuantity } from "./quantities.ts";

const COMPARISON = /^([^<>=!]+)(<=|>=|!=|=|<|>)(.*)$/;

export function findRuns(rows: readonly RunRow[], text: string): ReadonlySet<string> {
  const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return new Set(rows.map(({ run }) => run));
  const quantities = listQuantities(rows);
  const tests = words.map((word) => makeTest(word, quantities));
  return new Set(rows.filter((row) => tests.every((test) => test(row))).map(({ run }) => run));
}

function makeTest(word: string, quantities: readonly RunQuantity[]): (row: RunRow) => boolean {
  const [, name, operator, value] = COMPARISON.exec(word) ?? [];
  if (name === undefined || operator === undefined || value === undefined || value === "") {
    return (row) => searchable(row).includes(word);
  }
  const quantity = quantities.find(({ key, title }) => nameOf(key) === name || title.toLowerCase() === name);
  return (row) => {
    const known = textOf(row, name) ?? quantity?.of(row)?.toString();
    return known !== undefined && compare(known, operator, value);
  };
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
    workload: row.group,
    collocation: row.collocation,
  };
  const record = { ...row.tags, ...row.params };
  const key = Object.keys(record).find((each) => each.toLowerCase() === name);
  return (key === undefined ? facts[name] : record[key]) ?? undefined;
}

function compare(known: string, operator: string, value: string): boolean {
  const [a, b] = [Number(known), Number(value)];
  const areNumbers = known.trim() !== "" && !Number.isNaN(a) && !Number.isNaN(b);
  const order = areNumbers ? a - b : known.toLowerCase().localeCompare(value);
  switch (operator) {
    case "=":
      return order === 0;
    case "!=":
      return order !== 0;
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    default:
      return order >= 0;
  }
}

function searchable(row: RunRow): string {
  const named = [
    sayRun(row),
    row.run,
    row.experiment,
    row.group,
    row.user,
    row.host,
    row.state,
    row.cause,
    row.collocation,
  ];
  const params = Object.entries({ ...row.params, ...row.tags }).map(([name, value]) => `${name} ${value}`);
  return [...named, ...params].filter(Boolean).join(" ").toLowerCase();
}
