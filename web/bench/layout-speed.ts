// Times the layout of many units, compared with the way Atom's engine groups: for each key of each group, filter its rows.
// Prints one JSON object; benchmarks/layout_speed.py makes a table of it.

import { isNames, type UnitColumns } from "../src/layout/attributes.ts";
import { DEFAULT_VIEW, makeLayer, type View } from "../src/layout/grammar.ts";
import { keepUnits, layoutUnits, packUnits, type UnitLayout } from "../src/layout/layout.ts";
import { findLayoutFault } from "../src/layout/layout-faults.ts";
import { makeSyntheticUnits } from "../src/layout/synthetic-units.ts";

const SPACE = { width: 1600, height: 900 };
const REPEATS = 9;

type Row = Readonly<Record<string, string | null>>;

interface Group {
  readonly rows: readonly Row[];
  readonly children: readonly Group[];
}

/** One object per unit, as Atom takes its data. */
function toRows(columns: UnitColumns, attributes: readonly string[]): readonly Row[] {
  return Array.from({ length: columns.rowCount }, (_, row) =>
    Object.fromEntries(
      attributes.map((attribute) => {
        const values = columns.attributes.get(attribute);
        const name = values !== undefined && isNames(values) ? values.names[values.codes[row] ?? 0] : null;
        return [attribute, name ?? null];
      }),
    ),
  );
}

function groupByFilter(rows: readonly Row[], attributes: readonly string[]): Group {
  const [attribute, ...inner] = attributes;
  if (attribute === undefined) return { rows, children: [] };
  const keys = [...new Set(rows.map((row) => row[attribute]))];
  const children = keys.map((key) =>
    groupByFilter(
      rows.filter((row) => row[attribute] === key),
      inner,
    ),
  );
  return { rows, children };
}

function timeMs(work: () => unknown): number {
  const begin = performance.now();
  work();
  return performance.now() - begin;
}

function medianMs(work: () => unknown): number {
  const times = Array.from({ length: REPEATS }, () => timeMs(work)).sort((a, b) => a - b);
  return times[Math.floor(REPEATS / 2)] ?? Number.NaN;
}

/** The share of each parent's content that its packed children leave empty, over all parents with more than one. */
function measureWaste({ groups }: UnitLayout): number {
  const childArea = new Float64Array(groups.count);
  const children = new Uint32Array(groups.count);
  for (let group = 1; group < groups.count; group += 1) {
    const parent = groups.parent[group] ?? 0;
    const gap = groups.padding[groups.depth[group] ?? 0] ?? 0;
    childArea[parent] =
      (childArea[parent] ?? 0) + ((groups.width[group] ?? 0) + gap) * ((groups.height[group] ?? 0) + gap);
    children[parent] = (children[parent] ?? 0) + 1;
  }
  let used = 0;
  let whole = 0;
  for (let group = 0; group < groups.count; group += 1) {
    if ((children[group] ?? 0) < 2) continue;
    const depth = groups.depth[group] ?? 0;
    const padding = 2 * (groups.padding[depth] ?? 0);
    const gap = groups.padding[depth + 1] ?? 0;
    const height = (groups.height[group] ?? 0) - padding - (groups.labelHeight[depth] ?? 0) + gap;
    used += childArea[group] ?? 0;
    whole += ((groups.width[group] ?? 0) - padding + gap) * height;
  }
  return 1 - used / whole;
}

function compare(columns: UnitColumns, attributes: readonly string[]): object {
  const view: View = { ...DEFAULT_VIEW, layers: attributes.map((by) => makeLayer(by)) };
  const input = { view, columns, filtered: null, space: SPACE };
  const work = () => layoutUnits(input);
  const firstMs = timeMs(work);
  const { layout, packing } = packUnits(input);
  const rows = toRows(columns, attributes);
  return {
    attributes,
    units: columns.rowCount,
    groups: layout.groups.count - 1,
    fault: findLayoutFault(layout, new Array<boolean>(columns.rowCount).fill(true)),
    first_ms: firstMs,
    ours_ms: medianMs(work),
    kept_ms: medianMs(() => keepUnits(input, packing)),
    filter_per_key_ms: timeMs(() => groupByFilter(rows, attributes)),
    waste_ratio: measureWaste(layout),
  };
}

const gpus = Number(process.argv[2] ?? 90_910);
const columns = makeSyntheticUnits(gpus);
process.stdout.write(
  JSON.stringify([compare(columns, ["partition", "project", "user", "workload"]), compare(columns, ["node"])]),
);
