// The nodes of an execution flow as a table: the twin of the drawing, to read, to sort and to take along.

import { useMemo, useState } from "react";
import type { FlowAnswer, FlowNode } from "../../../api/generated.ts";
import { formatCsv } from "../../../base/csv.ts";
import { downloadText } from "../../../base/download.ts";
import { formatCount, formatPlural } from "../../../base/format.ts";
import { Text } from "../../../widgets/data-table/cells.tsx";
import { type Column, sortRows } from "../../../widgets/data-table/columns.ts";
import { DataTable, type TableSort } from "../../../widgets/data-table/data-table.tsx";
import { ExportMenu } from "../../../widgets/export-menu.tsx";
import { sayNs } from "../graph/axis.ts";
import styles from "../parallel.module.css";
import { MARK_TITLES } from "./looks.ts";

interface NodeRow {
  readonly at: number;
  readonly node: FlowNode;
  readonly stage: number | null;
  /** How the tensors that come in are split. */
  readonly splits: string | null;
  readonly marks: string | null;
  /** Names of the nodes it takes from. */
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
  const shown = useMemo(() => sortRows(rows, COLUMNS, sort), [rows, sort]);
  return (
    <div className={styles.table}>
      <header>
        <span>{formatPlural(shown.length, "node")} in the order of execution</span>
        <ExportMenu
          what="these nodes"
          files={{ csv: () => downloadText(`${trace}-flow.csv`, toCsv(shown), "text/csv") }}
        />
      </header>
      <div>
        <DataTable
          label="Nodes of the flow"
          columns={COLUMNS}
          rows={shown}
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

/** With a searched text, only nodes that have it. */
export function listNodes({ nodes, edges, blocks }: FlowAnswer, text: string): readonly NodeRow[] {
  const into: (typeof edges)[number][][] = nodes.map(() => []);
  for (const edge of edges) into[edge.target]?.push(edge);
  return nodes.flatMap((node, at) => {
    if (text && node.matches === 0) return [];
    const taken = into[at] ?? [];
    const splits = new Set(taken.flatMap(({ shard }) => (shard ? [shard.join(" × ")] : [])));
    const from = new Set(taken.filter(({ is_long }) => !is_long).map(({ source }) => nodes[source]?.label ?? ""));
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

type Say = string | number | null;

function column(
  key: string,
  title: string,
  width: number,
  rank: number,
  pick: (row: NodeRow) => Say,
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
  column("operators", "Operators", 84, 3, ({ node }) => node.operators, {
    align: "right",
    isLargestFirst: true,
    cell: ({ node }) => formatCount(node.operators),
  }),
  column("marks", "Strategy", 150, 1, ({ marks }) => marks),
  column("splits", "Inputs split", 96, 2, ({ splits }) => splits),
  column("from", "Takes from", 130, 5, ({ from }) => from, { grow: 1 }),
  column("time", "Time", 84, 3, ({ node }) => node.duration_ns, {
    align: "right",
    isLargestFirst: true,
    cell: ({ node }) => (node.duration_ns === null ? "–" : sayNs(node.duration_ns)),
  }),
];

function toCsv(rows: readonly NodeRow[]): string {
  return formatCsv(
    COLUMNS.map(({ key }) => key),
    rows.map((row) => COLUMNS.map((each) => each.csv(row))),
  );
}
