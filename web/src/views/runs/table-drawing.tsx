// The runs as a table: names, params, and every quantity that a run has.

import { useMemo, useState } from "react";
import type { RunRow } from "../../api/generated.ts";
import { computeOrder } from "../../base/order.ts";
import { openRun, type RunsPage } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Text } from "../../widgets/data-table/cells.tsx";
import type { Column } from "../../widgets/data-table/columns.ts";
import { DataTable, type TableSort } from "../../widgets/data-table/data-table.tsx";
import { RelativeTime } from "../../widgets/relative-time.tsx";
import { describeSharing, type RunGroup } from "./groups.ts";
import { formatNumber, type RunQuantity } from "./quantities.ts";

interface TableDrawingProps {
  readonly page: RunsPage;
  readonly groups: readonly RunGroup[];
  readonly quantities: readonly RunQuantity[];
}

export function TableDrawing({ page, groups, quantities }: TableDrawingProps) {
  const change = useChangeScreen();
  const [sort, setSort] = useState<TableSort>({ column: "run", descending: false });
  const columns = useMemo(() => listColumns(groups, quantities), [groups, quantities]);
  const rows = useMemo(() => {
    const by = columns.find(({ key }) => key === sort.column) ?? columns[0];
    const all = groups.flatMap((group) => group.rows);
    if (!by) return all;
    return Array.from(computeOrder(all.map(by.sortKey), sort.descending), (at) => all[at] as RunRow);
  }, [groups, columns, sort]);
  return (
    <DataTable
      label="Runs"
      columns={columns}
      rows={rows}
      keyOf={({ run }) => run}
      selectedKey={page.open}
      sort={sort}
      onSort={setSort}
      onSelect={(row, isWalking) => change(openRun(row), isWalking ? "replace" : "push")}
    />
  );
}

export function listColumns(
  groups: readonly RunGroup[],
  quantities: readonly RunQuantity[],
): readonly Column<RunRow>[] {
  const rows = groups.flatMap((group) => group.rows);
  const labels = new Map(groups.flatMap((group) => group.rows.map(({ run }) => [run, group.label])));
  const textParams = [...new Set(rows.flatMap(({ params }) => Object.keys(params)))]
    .filter((name) => !quantities.some(({ key }) => key === `param:${name}`))
    .sort();
  return [
    textColumn("run", "Run", (row) => labels.get(row.run) ?? row.run, { width: 180, grow: 2, rank: 0 }),
    textColumn("experiment", "Experiment", ({ experiment }) => experiment, { rank: 3 }),
    textColumn("state", "State", ({ state }) => state, { width: 90, rank: 1 }),
    textColumn("collocation", "Sharing", describeSharing, { width: 90, rank: 6 }),
    {
      key: "started",
      title: "Started",
      width: 110,
      grow: 0,
      rank: 4,
      isLargestFirst: true,
      cell: ({ started_at }) => (started_at === null ? <Text>{null}</Text> : <RelativeTime at={started_at} />),
      sortKey: ({ started_at }) => started_at,
      csv: ({ started_at }) => (started_at === null ? null : new Date(started_at).toISOString()),
    },
    ...textParams.map((name) => textColumn(`param:${name}`, name, ({ params }) => params[name] ?? null, { rank: 5 })),
    ...quantities.map((quantity, at) => numberColumn(quantity, at)),
  ];
}

interface ColumnSize {
  readonly width?: number;
  readonly grow?: number;
  readonly rank: number;
}

function textColumn(key: string, title: string, of: (row: RunRow) => string | null, size: ColumnSize): Column<RunRow> {
  return {
    key,
    title,
    width: size.width ?? 110,
    grow: size.grow ?? 1,
    rank: size.rank,
    cell: (row) => <Text>{of(row)}</Text>,
    sortKey: of,
    csv: of,
  };
}

function numberColumn(quantity: RunQuantity, at: number): Column<RunRow> {
  return {
    key: quantity.key,
    title: quantity.title,
    ...(quantity.tip === undefined ? {} : { tip: quantity.tip }),
    width: 132,
    grow: 0,
    align: "right",
    rank: 2 + at,
    isLargestFirst: true,
    cell: (row) => formatNumber(quantity.of(row), quantity.unit),
    sortKey: (row) => quantity.of(row),
    csv: (row) => quantity.of(row),
  };
}
