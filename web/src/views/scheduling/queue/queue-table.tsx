// Who waits, or that nobody does.

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
import { makeAxis, sayCalibration } from "./words.ts";

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
  const ordered = useMemo(() => sortRows(rows, columns, sort), [rows, columns, sort]);
  if (rows.length === 0 && page.text === "") {
    return queue.awaited.length > 0 ? <NotYetKnown kinds={queue.awaited} /> : <Nobody partition={page.queue} />;
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
          data-tip="Forecasts as under Before submitting; the Predictions tab says how often they held"
        >
          {sayCalibration(queue)}
          {axis.ticks.length > 0 && `; lines at ${axis.ticks.map(({ title }) => title).join(", ")} from now`}
        </span>
        <ExportMenu what="these workloads" files={{ csv: () => exportCsv(ordered, columns) }} />
      </div>
      {rows.length === 0 && <Message role="status">Nobody who waits is like that.</Message>}
      <div className={styles.table} hidden={rows.length === 0}>
        <DataTable
          label="Waiting workloads"
          columns={columns}
          rows={ordered}
          keyOf={keyOf}
          selectedKey={selection?.kind === "workload" ? selection.key : null}
          sort={sort}
          onSort={({ column, descending }) => {
            const known = QUEUE_COLUMNS.find((name) => name === column);
            if (known) change(changeScheduling({ sort: { column: known, descending } }));
          }}
          onSelect={(row, isWalking) =>
            change(select({ kind: "workload", key: row.workload }), isWalking ? "replace" : "push")
          }
        />
      </div>
    </>
  );
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

function NotYetKnown({ kinds }: { kinds: readonly string[] }) {
  return (
    <Message role="status">
      <strong>What waits is not known yet</strong>
      <span>The server has just started. First answers are awaited from {kinds.join(" and ")}.</span>
    </Message>
  );
}

function Nobody({ partition }: { partition: string }) {
  return (
    <Message role="status">
      <span data-tone="ok">
        <Icon name="check" size={20} />
      </span>
      <strong>Nothing waits</strong>
      <span>{partition ? `Whatever was submitted to ${partition} runs.` : "Whatever was submitted runs."}</span>
    </Message>
  );
}
