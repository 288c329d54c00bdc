// The nodes of an execution flow as a table: the text alternative of the drawing, sortable and exportable.

import { useMemo, useState } from "react";
import type { FlowAnswer, FlowNode } from "../../../api/generated.ts";
import { formatCsv } from "../../../base/csv.ts";
import { downloadText } from "../../../base/download.ts";
import { formatCount, formatPlural } from "../../../base/format.ts";
import { Text } from "../../../widgets/data-table/cells.tsx";
import { type Column, numberColumn, sortRows } from "../../../widgets/data-table/columns.ts";
import { DataTable, type TableSort } from "../../../widgets/data-table/data-table.tsx";
import { ExportMenu } from "../../../widgets/export-menu.tsx";
import { formatNs } from "../graph/axis.ts";
import styles from "../parallel.module.css";
import { MARK_TITLES } from "./looks.ts";

interface NodeRow {
  readonly at: number;
  readonly node: FlowNode;
  readonly stage: number | null;
  /** Splits of the input tensors. */
  readonly splits: string | null;
  readonly marks: string | null;
  /** Names of the input nodes. */
  readonly from: string | null;
}

interface FlowTableProps {
  readonly trace: string;
  readonly flow: FlowAnswer;
  readonly text: string;
  readonly selected: number | null;
  onSelect(node: number): void;
}

export function FlowTable({ trace, flow, text, selected, onSelect }: FlowTableProps) {
  const [sort, setSort] = useState<TableSort>({ column: "at", descending: false });
  const rows = useMemo(() => listNodes(flow, text), [flow, text]);
  const sortedRows = useMemo(() => sortRows(rows, COLUMNS, sort), [rows, sort]);
  return (
    <div className={styles.table}>
      <header>
        <span>{formatPlural(sortedRows.length, "node")} in the order of execution</span>
        <ExportMenu
          what="these nodes"
          files={{ csv: () => downloadText(`${trace}-flow.csv`, toCsv(sortedRows), "text/csv") }}
        />
      </header>
      <div>
        <DataTable
          label="Nodes of the flow"
          columns={COLUMNS}
          rows={sortedRows}
          keyOf={({ at }) => String(at)}
          selectedKey={selected === null ? null : String(selected)}
          sort={sort}
          onSort={setSort}
          onSelect={({ at }) => onSelect(at)}
        />
      </div>
    </div>
  );
}

/** With a search text, only matching nodes. */
export function listNodes({ nodes, edges, blocks }: FlowAnswer, text: string): readonly NodeRow[] {
  const incoming: (typeof edges)[number][][] = nodes.map(() => []);
  for (const edge of edges) incoming[edge.target]?.push(edge);
  return nodes.flatMap((node, at) => {
    if (text && node.matches === 0) return [];
    const inputs = incoming[at] ?? [];
    const splits = new Set(inputs.flatMap(({ shard }) => (shard ? [shard.join(" × ")] : [])));
    const from = new Set(inputs.filter(({ is_long }) => !is_long).map(({ source }) => nodes[source]?.label ?? ""));
    return {
      at,
      node,
      stage: blocks[node.block]?.stage ?? null,
      splits: [...splits].join(", ") || null,
      marks:
        node.marks.map(({ mark, count }) => MARK_TITLES[mark] + (count > 1 ? ` ×${count}` : "")).join(", ") || null,
      from: [...from].join(", ") || null,
    };
  });
}

type CellValue = string | number | null;

function column(
  key: string,
  title: string,
  width: number,
  rank: number,
  pick: (row: NodeRow) => CellValue,
  more: Partial<Column<NodeRow>> = {},
): Column<NodeRow> {
  return {
    key,
    title,
    width,
    grow: 0,
    rank,
    cell: (row) => {
      const value = pick(row);
      return <Text>{value === null ? null : String(value)}</Text>;
    },
    sortKey: pick,
    csv: pick,
    ...more,
  };
}

const COLUMNS: readonly Column<NodeRow>[] = [
  column("at", "#", 52, 0, ({ at }) => at + 1, { align: "right" }),
  column("stage", "Stage", 60, 1, ({ stage }) => stage),
  column("label", "Node", 150, 0, ({ node }) => node.label + (node.count > 1 ? ` ×${node.count}` : ""), { grow: 1 }),
  column("namespace", "Namespace", 150, 2, ({ node }) => node.namespace || null, { grow: 1 }),
  column("module", "Module", 120, 4, ({ node }) => node.module?.class_name ?? null),
  numberColumn({ key: "operators", title: "Operators", width: 84, rank: 3 }, ({ node }) => node.operators, formatCount),
  column("marks", "Strategy", 150, 1, ({ marks }) => marks),
  column("splits", "Input split", 96, 2, ({ splits }) => splits),
  column("from", "Inputs from", 130, 5, ({ from }) => from, { grow: 1 }),
  numberColumn({ key: "time", title: "Time", width: 84, rank: 3 }, ({ node }) => node.duration_ns, formatNs),
];

function toCsv(rows: readonly NodeRow[]): string {
  return formatCsv(
    COLUMNS.map(({ key }) => key),
    rows.map((row) => COLUMNS.map((shownColumn) => shownColumn.csv(row))),
  );
}
