// Times what the overview computes at every tick of many units: conditions, facet counts, colors and legend, compared
// with the same by rows: one object per unit, closures for conditions and colors, as a chart library takes its data.
// Prints one JSON object; benchmarks/overview_columns.py makes a table of it.

import type { NameColumn } from "../src/api/columns.ts";
import type { Snapshot } from "../src/api/snapshot.ts";
import type { Units } from "../src/data/units.ts";
import { isNames } from "../src/layout/attributes.ts";
import { makeSyntheticUnits } from "../src/layout/synthetic-units.ts";
import { type AttributeName, attributeOf } from "../src/state/attributes.ts";
import { type ColorSettings, DEFAULT_COLORS } from "../src/state/color.ts";
import { parseWhere, type Where } from "../src/state/where.ts";
import { applyWhere, countNames, markFiltered } from "../src/views/overview/filter/apply-where.ts";
import { isNumbers } from "../src/views/overview/filter/filter-columns.ts";
import { unitColumns } from "../src/views/overview/filter/table-columns.ts";
import { computeColoring } from "../src/views/overview/picture/color/coloring.ts";

const REPEATS = 15;
const FACETS = ["unit_state", "partition", "project", "user"] as const;
const TOKENS = { bg: 0, panel: 1, raised: 2, line: 3, text: 4, muted: 5, faint: 6, accent: 7, bad: 8 };

interface Case {
  readonly what: string;
  readonly where: readonly string[];
  readonly text: string;
  readonly color: AttributeName;
  readonly settings: Partial<ColorSettings>;
}

const CASES: readonly Case[] = [
  { what: "no condition, colored by a metric", where: [], text: "", color: "gpu_util_ratio", settings: {} },
  {
    what: "three conditions and a search, linear scale",
    where: ["gpu_util_ratio:0..0.5", "user:user-1,user-2,user-3|partition:v100", "!project:project-7"],
    text: "gpu-1",
    color: "gpu_util_ratio",
    settings: {},
  },
  {
    what: "one condition, scale by rank, remapped",
    where: ["gpu_util_ratio:0.1..0.9"],
    text: "",
    color: "gpu_util_ratio",
    settings: { scale: { kind: "quantile", bins: 5 }, isRemapped: true },
  },
  { what: "one condition, colored by workload", where: ["user~user-1"], text: "", color: "workload", settings: {} },
];

/** A tick brings new values for the same units: nothing computed for the last one may be used again. */
function makeTicks(gpus: number): () => Units {
  const columns = makeSyntheticUnits(gpus);
  const none: NameColumn = { codes: new Uint32Array(columns.rowCount), names: [null] };
  const numbers = new Float64Array(columns.rowCount).fill(Number.NaN);
  const snapshot: Snapshot = {
    inventoryVersion: 1,
    rowCount: columns.rowCount,
    names(name) {
      const column = columns.attributes.get(name);
      return column !== undefined && isNames(column) ? column : none;
    },
    numbers: () => numbers,
  };
  const find = (metric: string): Float32Array | null => {
    const column = columns.attributes.get(metric);
    return column instanceof Float32Array ? column : null;
  };
  return () => ({
    snapshot,
    tick: { inventoryVersion: 1, tickVersion: 1, sampledAt: 0, rowCount: columns.rowCount, find },
  });
}

interface Computed {
  readonly passing: number;
  /** How many units each facet would show, summed: a check, not a result. */
  readonly counted: number;
  readonly color: Uint32Array;
}

function computeByColumns(units: Units, where: Where, { text, color, settings }: Case): Computed {
  const columns = unitColumns(units);
  const narrowed = applyWhere(columns, where, text);
  const drawn = markDrawn(units);
  let counted = 0;
  for (const facet of FACETS) {
    const column = columns.find(facet);
    if (column === null || isNumbers(column)) continue;
    const clause = where.findIndex(
      ([condition, second]) => condition?.attribute === facet && !second && !condition.isNegated,
    );
    for (const count of countNames(column, narrowed, clause, drawn).subarray(1)) counted += count;
  }
  const { marks, matching } = computeColoring({
    units,
    attribute: attributeOf(color),
    settings: { ...DEFAULT_COLORS, ...settings },
    filtered: markFiltered(narrowed),
    drawn,
    tokens: TOKENS,
  });
  return { passing: matching, counted, color: marks.color };
}

function markDrawn({ snapshot }: Units): Uint8Array {
  const { codes, names } = snapshot.names("unit_state");
  const requested = names.indexOf("requested");
  const drawn = new Uint8Array(codes.length);
  for (let row = 0; row < codes.length; row += 1) drawn[row] = codes[row] === requested ? 0 : 1;
  return drawn;
}

type Row = Readonly<Record<string, string | number | null>>;
type Test = (row: Row) => boolean;

const ROW_FIELDS = ["unit", "unit_state", "partition", "project", "user", "workload"] as const;

function toRows({ snapshot, tick }: Units): readonly Row[] {
  const util = tick?.find("gpu_util_ratio");
  return Array.from({ length: snapshot.rowCount }, (_, row) => {
    const fields = ROW_FIELDS.map((name) => {
      const { codes, names } = snapshot.names(name);
      return [name, names[codes[row] ?? 0] ?? null] as const;
    });
    const value = util?.[row] ?? Number.NaN;
    return { ...Object.fromEntries(fields), gpu_util_ratio: Number.isNaN(value) ? null : value };
  });
}

function toTest(where: Where, text: string): { readonly tests: readonly Test[]; readonly search: Test } {
  const tests = where.map(
    (clause): Test =>
      (row) =>
        clause.some((condition) => {
          const value = row[condition.attribute] ?? null;
          if (condition.kind === "range") {
            if (typeof value !== "number") return false;
            const isInside = value >= (condition.min ?? -Infinity) && value <= (condition.max ?? Infinity);
            return isInside !== condition.isNegated;
          }
          const isMet =
            condition.kind === "text"
              ? String(value ?? "")
                  .toLowerCase()
                  .includes(condition.text.toLowerCase())
              : condition.names.includes(value as string | null);
          return isMet !== condition.isNegated;
        }),
  );
  const words = text.toLowerCase().split(" ").filter(Boolean);
  const search: Test = (row) => {
    const all = ["unit", "user", "project", "workload", "partition"]
      .map((name) => row[name])
      .join(" ")
      .toLowerCase();
    return words.every((word) => all.includes(word));
  };
  return { tests, search };
}

/** Conditions as closures, counts in maps, a color object per row. */
function computeByRows(
  units: Units,
  where: Where,
  { text }: Case,
): { readonly passing: number; readonly counted: number } {
  const rows = toRows(units);
  const { tests, search } = toTest(where, text);
  const counts = FACETS.map(() => new Map<string, number>());
  const drawn = rows.filter((row) => row.unit_state !== "requested");
  const matching = drawn.filter(search);
  FACETS.forEach((facet, index) => {
    const own = where.findIndex(
      ([condition, second]) => condition?.attribute === facet && !second && !condition.isNegated,
    );
    for (const row of matching.filter((unit) => tests.every((test, at) => at === own || test(unit)))) {
      const name = row[facet];
      if (typeof name === "string") counts[index]?.set(name, (counts[index]?.get(name) ?? 0) + 1);
    }
  });
  const passing = matching.filter((row) => tests.every((test) => test(row)));
  const values = passing.map((row) => row.gpu_util_ratio).filter((value) => typeof value === "number");
  const low = values.reduce((least, value) => Math.min(least, value), 1);
  const bins = Object.groupBy(values, (value) => Math.min(47, Math.floor(value * 48)));
  const colors = drawn.map((row) => {
    const value = row.gpu_util_ratio;
    return {
      color: typeof value === "number" ? Math.round((value - low) * 255) : null,
      shape: row.unit_state,
      bins,
    };
  });
  const counted = counts.flatMap((each) => [...each.values()]).reduce((sum, count) => sum + count, 0);
  return { passing: colors.length > 0 ? passing.length : 0, counted };
}

/** Of the processor, not of the wall: other work of the machine does not count. */
function timeMs(work: () => unknown): number {
  const begin = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(begin);
  return (user + system) / 1000;
}

function medianMs(work: () => unknown, repeats: number): number {
  const times = Array.from({ length: repeats }, () => timeMs(work)).sort((a, b) => a - b);
  return times[Math.floor(repeats / 2)] ?? Number.NaN;
}

function compare(nextTick: () => Units, each: Case): object {
  const where = parseWhere(each.where, []);
  const first = timeMs(() => computeByColumns(nextTick(), where, each));
  const ours = computeByColumns(nextTick(), where, each);
  const theirs = computeByRows(nextTick(), where, each);
  return {
    what: each.what,
    units: nextTick().snapshot.rowCount,
    passing: ours.passing,
    is_same: ours.passing === theirs.passing && ours.counted === theirs.counted,
    first_ms: first,
    ours_ms: medianMs(() => computeByColumns(nextTick(), where, each), REPEATS),
    rows_ms: medianMs(() => computeByRows(nextTick(), where, each), 3),
  };
}

const nextTick = makeTicks(Number(process.argv[2] ?? 90_910));
process.stdout.write(JSON.stringify(CASES.map((each) => compare(nextTick, each))));
