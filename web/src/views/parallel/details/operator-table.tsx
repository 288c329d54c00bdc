// Operators of the window by cost: sortable, with a filter and CSV export. Selecting one highlights it in the graph.

import { useMemo, useState } from "react";
import { nameAt, numberAt } from "../../../api/columns.ts";
import type { NsRange, TraceOperators } from "../../../api/traces-client.ts";
import { formatCsv } from "../../../base/csv.ts";
import { downloadText } from "../../../base/download.ts";
import { formatCount, formatRatio } from "../../../base/format.ts";
import { useOperators } from "../../../data/traces.ts";
import { type Column, numberColumn, sortRows } from "../../../widgets/data-table/columns.ts";
import { DataTable, type TableSort } from "../../../widgets/data-table/data-table.tsx";
import { ExportMenu } from "../../../widgets/export-menu.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { TextSearch } from "../../../widgets/text-search.tsx";
import { formatNs } from "../graph/axis.ts";
import { KIND_COLORS, kindOf } from "../graph/kinds.ts";
import styles from "./details.module.css";

interface Operator {
  readonly name: string;
  readonly class: string | null;
  readonly phase: string | null;
  readonly calls: number | null;
  readonly totalNs: number | null;
  readonly meanNs: number | null;
  readonly maxNs: number | null;
  readonly share: number | null;
  readonly ranks: number | null;
  readonly worstRank: number | null;
  readonly imbalance: number | null;
  readonly flops: number | null;
}

const COLUMNS: readonly Column<Operator>[] = [
  {
    key: "name",
    title: "Operator",
    width: 110,
    grow: 1,
    rank: 0,
    cell: (row) => (
      <span className={styles.kind} title={row.name}>
        <i data-swatch={true} style={{ background: KIND_COLORS[kindOf(row.class, row.phase)] }} />
        <span>{row.name}</span>
      </span>
    ),
    sortKey: (row) => row.name,
    csv: (row) => row.name,
  },
  numberColumn(
    { key: "total", title: "Total", tip: "Over all ranks, in this window", width: 66, rank: 0 },
    (row) => row.totalNs,
    formatNs,
  ),
  numberColumn(
    { key: "share", title: "Share", tip: "Of all operators' time", width: 50, rank: 1 },
    (row) => row.share,
    formatRatio,
  ),
  numberColumn(
    { key: "count", title: "Calls", tip: "On all ranks", width: 50, rank: 3 },
    (row) => row.calls,
    formatCount,
  ),
  numberColumn({ key: "mean", title: "Mean", tip: "Per call", width: 62, rank: 4 }, (row) => row.meanNs, formatNs),
  numberColumn({ key: "max", title: "Longest", tip: "Longest call", width: 66, rank: 2 }, (row) => row.maxNs, formatNs),
  numberColumn(
    { key: "imbalance", title: "λ", tip: "Load imbalance over ranks: max/mean − 1", width: 46, rank: 5 },
    (row) => row.imbalance,
    formatRatio,
  ),
  numberColumn(
    { key: "worst", title: "Worst", tip: "Rank with the longest time", width: 46, rank: 6 },
    (row) => row.worstRank,
    String,
  ),
];

interface OperatorPaneProps {
  readonly trace: string;
  readonly range: NsRange;
  readonly text: string;
  onFind(name: string): void;
}

export function OperatorPane({ trace, range, text, onFind }: OperatorPaneProps) {
  const source = useOperators(trace, range, true);
  return (
    <Frame source={source} what="operators" isEmpty={({ count }) => count === 0} empty="No operators in this window.">
      {(value) => <Table operators={value} trace={trace} text={text} onFind={onFind} />}
    </Frame>
  );
}

function Table({ operators, trace, text, onFind }: { operators: TraceOperators } & Omit<OperatorPaneProps, "range">) {
  const [sort, setSort] = useState<TableSort>({ column: "total", descending: true });
  const [filter, setFilter] = useState("");
  const rows = useMemo(() => listOperators(operators), [operators]);
  const sortedRows = useMemo(() => sortRows(filterOperators(rows, filter), COLUMNS, sort), [rows, filter, sort]);
  return (
    <div className={styles.pane}>
      <div className={styles.tools}>
        <TextSearch label="Filter operators" value={filter} onChange={setFilter} />
        <ExportMenu
          what="these operators"
          files={{ csv: () => downloadText(`${trace}-operators.csv`, toCsv(sortedRows), "text/csv") }}
        />
      </div>
      <DataTable
        label="Operators"
        columns={COLUMNS}
        rows={sortedRows}
        keyOf={keyOf}
        selectedKey={sortedRows.find(({ name }) => name === text) ? text : null}
        sort={sort}
        onSort={setSort}
        onSelect={({ name }) => onFind(name === text ? "" : name)}
      />
    </div>
  );
}

/** Operators whose name contains all words. */
export function filterOperators(rows: readonly Operator[], text: string): readonly Operator[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
}

function keyOf({ name }: Operator): string {
  return name;
}

export function listOperators(table: TraceOperators): readonly Operator[] {
  return Array.from({ length: table.count }, (_, at) => ({
    name: nameAt(table.name, at) ?? "unnamed",
    class: nameAt(table.class, at),
    phase: nameAt(table.phase, at),
    calls: numberAt(table.calls, at),
    totalNs: numberAt(table.totalNs, at),
    meanNs: numberAt(table.meanNs, at),
    maxNs: numberAt(table.maxNs, at),
    share: numberAt(table.share, at),
    ranks: numberAt(table.ranks, at),
    worstRank: numberAt(table.worstRank, at),
    imbalance: numberAt(table.imbalance, at),
    flops: numberAt(table.flops, at),
  }));
}

export function toCsv(rows: readonly Operator[]): string {
  return formatCsv(
    [
      "name",
      "class",
      "phase",
      "count",
      "total_ns",
      "mean_ns",
      "max_ns",
      "share",
      "ranks",
      "worst_rank",
      "imbalance",
      "flops",
    ],
    rows.map((row) => [
      row.name,
      row.class,
      row.phase,
      row.calls,
      row.totalNs,
      row.meanNs,
      row.maxNs,
      row.share,
      row.ranks,
      row.worstRank,
      row.imbalance,
      row.flops,
    ]),
  );
}
