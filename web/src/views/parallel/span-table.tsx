// The visible spans as a table: the text alternative of the graph, sortable and exportable.

import { useMemo, useState } from "react";
import { nameAt, numberAt } from "../../api/columns.ts";
import type { Marey } from "../../api/marey.ts";
import { formatCsv } from "../../base/csv.ts";
import { downloadText } from "../../base/download.ts";
import { formatCount, formatPlural } from "../../base/format.ts";
import { Text } from "../../widgets/data-table/cells.tsx";
import { type Column, numberColumn, sortRows } from "../../widgets/data-table/columns.ts";
import { DataTable, type TableSort } from "../../widgets/data-table/data-table.tsx";
import { ExportMenu } from "../../widgets/export-menu.tsx";
import { formatNs } from "./graph/axis.ts";
import { KIND_COLORS, KIND_TITLES, kindOf } from "./graph/kinds.ts";
import styles from "./parallel.module.css";

interface SpanRow {
  readonly at: number;
  readonly id: number | null;
  readonly row: string;
  readonly name: string | null;
  readonly class: string | null;
  readonly phase: string | null;
  readonly microBatch: number | null;
  readonly startNs: number;
  readonly lengthNs: number;
  readonly waitNs: number | null;
  readonly members: number;
  readonly worstNs: number | null;
}

interface SpanTableProps {
  readonly trace: string;
  readonly marey: Marey;
  readonly originNs: number;
  readonly text: string;
  readonly selected: number | null;
  onSelect(span: number | null): void;
}

export function SpanTable({ trace, marey, originNs, text, selected, onSelect }: SpanTableProps) {
  const [sort, setSort] = useState<TableSort>({ column: "start", descending: false });
  const columns = useMemo(() => listColumns(originNs), [originNs]);
  const rows = useMemo(() => listSpans(marey, text), [marey, text]);
  const sortedRows = useMemo(() => sortRows(rows, columns, sort), [rows, columns, sort]);
  return (
    <div className={styles.table}>
      <header>
        <span>{formatPlural(sortedRows.length, "span")} in view, with a margin on both sides</span>
        <ExportMenu
          what="these spans"
          files={{ csv: () => downloadText(`${trace}-spans.csv`, toCsv(sortedRows), "text/csv") }}
        />
      </header>
      <div>
        <DataTable
          label="Spans"
          columns={columns}
          rows={sortedRows}
          keyOf={keyOf}
          selectedKey={sortedRows.find(({ id }) => id !== null && id === selected)?.at.toString() ?? null}
          sort={sort}
          onSort={setSort}
          onSelect={({ id }) => onSelect(id)}
        />
      </div>
    </div>
  );
}

function keyOf({ at }: SpanRow): string {
  return String(at);
}

export function listSpans({ spans, rows }: Marey, text: string): readonly SpanRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return Array.from({ length: spans.count }, (_, at) => {
    const id = numberAt(spans.span, at);
    return {
      at,
      id: id ?? numberAt(spans.worstSpan, at),
      row: rows[spans.row[at] ?? 0]?.label ?? "",
      name: nameAt(spans.name, at),
      class: nameAt(spans.class, at),
      phase: nameAt(spans.phase, at),
      microBatch: numberAt(spans.microBatch, at),
      startNs: spans.startNs[at] ?? 0,
      lengthNs: (spans.endNs[at] ?? 0) - (spans.startNs[at] ?? 0),
      waitNs: numberAt(spans.waitNs, at),
      members: numberAt(spans.members, at) ?? 1,
      worstNs: numberAt(spans.maxNs, at),
    };
  }).filter(({ name }) => words.every((word) => name?.toLowerCase().includes(word)));
}

function listColumns(originNs: number): readonly Column<SpanRow>[] {
  return [
    {
      key: "row",
      title: "Row",
      width: 90,
      grow: 0,
      rank: 0,
      cell: ({ row }) => row,
      sortKey: ({ row }) => row,
      csv: ({ row }) => row,
    },
    {
      key: "name",
      title: "Span",
      width: 160,
      grow: 1,
      rank: 0,
      cell: (row) => <Text>{row.name ?? (row.members > 1 ? `${row.members} merged` : null)}</Text>,
      sortKey: ({ name }) => name,
      csv: ({ name }) => name,
    },
    {
      key: "kind",
      title: "Kind",
      width: 120,
      grow: 0,
      rank: 1,
      cell: (row) => {
        const kind = kindOf(row.class, row.phase);
        return (
          <span className={styles.kind}>
            <i data-swatch={true} style={{ background: KIND_COLORS[kind] }} /> {KIND_TITLES[kind]}
          </span>
        );
      },
      sortKey: (row) => kindOf(row.class, row.phase),
      csv: ({ class: name }) => name,
    },
    numberColumn({ key: "batch", title: "Micro-batch", width: 96, rank: 4 }, (row) => row.microBatch, String),
    numberColumn({ key: "start", title: "Start", width: 90, rank: 0 }, (row) => row.startNs - originNs, formatNs),
    numberColumn({ key: "length", title: "Duration", width: 84, rank: 0 }, (row) => row.lengthNs, formatNs),
    numberColumn({ key: "wait", title: "Wait", width: 84, rank: 2 }, (row) => row.waitNs, formatNs),
    numberColumn({ key: "members", title: "Merged", width: 76, rank: 3 }, (row) => row.members, formatCount),
    numberColumn({ key: "worst", title: "Longest", width: 84, rank: 3 }, (row) => row.worstNs, formatNs),
  ];
}

export function toCsv(rows: readonly SpanRow[]): string {
  return formatCsv(
    [
      "row",
      "name",
      "class",
      "phase",
      "micro_batch",
      "start_ns",
      "duration_ns",
      "wait_ns",
      "count",
      "longest_ns",
      "span",
    ],
    rows.map((row) => [
      row.row,
      row.name,
      row.class,
      row.phase,
      row.microBatch,
      row.startNs,
      row.lengthNs,
      row.waitNs,
      row.members,
      row.worstNs,
      row.id,
    ]),
  );
}
