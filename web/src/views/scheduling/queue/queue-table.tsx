// Table of waiting workloads, or why it is empty.

import { useMemo } from "react";
import type { QueueAnswer, QueueRow } from "../../../api/generated.ts";
import { formatCsv } from "../../../base/csv.ts";
import { downloadText } from "../../../base/download.ts";
import { formatCount } from "../../../base/format.ts";
import { SEARCH_HINT } from "../../../base/search.ts";
import { select } from "../../../state/changes.ts";
import { changeScheduling, QUEUE_COLUMNS, type SchedulingPage } from "../../../state/scheduling.ts";
import { useChangeScreen, useScreen } from "../../../state/use-screen.ts";
import { sortRows } from "../../../widgets/data-table/columns.ts";
import { DataTable } from "../../../widgets/data-table/data-table.tsx";
import { ExportMenu } from "../../../widgets/export-menu.tsx";
import { Message } from "../../../widgets/frame.tsx";
import { Icon } from "../../../widgets/icon.tsx";
import { TextSearch } from "../../../widgets/text-search.tsx";
import styles from "./queue.module.css";
import { queueColumns } from "./queue-columns.tsx";
import { describeCalibration, makeAxis } from "./words.ts";

interface QueueTableProps {
  readonly queue: QueueAnswer;
  readonly rows: readonly QueueRow[];
  readonly page: SchedulingPage;
}

export function QueueTable({ queue, rows, page }: QueueTableProps) {
  const { selection } = useScreen();
  const change = useChangeScreen();
  const { sort } = page;
  const axis = useMemo(() => makeAxis(queue.at, findTimes(rows)), [queue.at, rows]);
  const columns = useMemo(() => queueColumns(axis), [axis]);
  // Workloads that wait for something else than GPUs have no place in line: they follow those that do, in any order.
  const sortedRows = useMemo(() => {
    const sorted = sortRows(rows, columns, sort);
    return [...sorted.filter(isInLine), ...sorted.filter((row) => !isInLine(row))];
  }, [rows, columns, sort]);
  if (rows.length === 0 && page.text === "") {
    return queue.awaited.length > 0 ? <QueueNotLoaded kinds={queue.awaited} /> : <EmptyQueue partition={page.queue} />;
  }
  return (
    <>
      <div className={styles.toolbar}>
        <span className={styles.caption}>
          {page.queue ? `Queue of ${page.queue}` : "All queues"} <small role="status">{formatCount(rows.length)}</small>
        </span>
        <TextSearch
          label="Filter workloads"
          hint={SEARCH_HINT}
          value={page.text}
          onChange={(text) => change(changeScheduling({ text }), "replace")}
        />
        <span
          className={styles.axis}
          data-tip="Same forecasts as under Before submitting. The tab Predictions shows how reliable they were"
        >
          {describeCalibration(queue)}
        </span>
        <ExportMenu what="these workloads" files={{ csv: () => exportCsv(sortedRows, columns) }} />
      </div>
      {rows.length === 0 && <Message role="status">No waiting workloads match.</Message>}
      <div className={styles.table} hidden={rows.length === 0}>
        <DataTable
          label="Waiting workloads"
          columns={columns}
          rows={sortedRows}
          keyOf={keyOf}
          selectedKey={selection?.kind === "workload" ? selection.key : null}
          sort={sort}
          onSort={({ column, descending }) => {
            const sortColumn = QUEUE_COLUMNS.find((name) => name === column);
            if (sortColumn) change(changeScheduling({ sort: { column: sortColumn, descending } }));
          }}
          onSelect={(row, isWalking) =>
            change(select({ kind: "workload", key: row.workload }), isWalking ? "replace" : "push")
          }
        />
      </div>
    </>
  );
}

function isInLine({ position }: QueueRow): boolean {
  return position !== null;
}

function keyOf({ workload }: QueueRow): string {
  return workload;
}

function findTimes(rows: readonly QueueRow[]): readonly number[] {
  return rows
    .flatMap(({ likely, planned_at, scheduler_at }) => [likely?.to_at, planned_at, scheduler_at])
    .filter((at) => typeof at === "number");
}

function exportCsv(rows: readonly QueueRow[], columns: ReturnType<typeof queueColumns>): void {
  const text = formatCsv(
    columns.map(({ key }) => key),
    rows.map((row) => columns.map((column) => column.csv(row))),
  );
  downloadText("clusterscape-queue.csv", text, "text/csv");
}

function QueueNotLoaded({ kinds }: { kinds: readonly string[] }) {
  return (
    <Message role="status">
      <strong>The queue is not loaded yet</strong>
      <span>The server has just started and waits for {kinds.join(" and ")}.</span>
    </Message>
  );
}

function EmptyQueue({ partition }: { partition: string }) {
  return (
    <Message role="status">
      <span data-tone="ok">
        <Icon name="check" size={20} />
      </span>
      <strong>No workloads waiting</strong>
      <span>
        {partition ? `All workloads submitted to ${partition} have started.` : "All submitted workloads have started."}
      </span>
    </Message>
  );
}
