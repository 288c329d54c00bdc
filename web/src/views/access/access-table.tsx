// A sortable table of the access page.

import { type ReactNode, useMemo, useState } from "react";
import { type Column, sortRows } from "../../widgets/data-table/columns.ts";
import { DataTable, type TableSort } from "../../widgets/data-table/data-table.tsx";
import { Message } from "../../widgets/frame.tsx";
import styles from "./access.module.css";

interface AccessTableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  keyOf(row: Row): string;
  readonly selectedKey: string | null;
  readonly firstSort: TableSort;
  /** Shown where there are no rows. */
  readonly empty: ReactNode;
  onSelect(row: Row): void;
}

export function AccessTable<Row>(props: AccessTableProps<Row>) {
  const { label, columns, rows, keyOf, selectedKey, firstSort, empty, onSelect } = props;
  const [sort, setSort] = useState(firstSort);
  const sortedRows = useMemo(() => sortRows(rows, columns, sort), [rows, columns, sort]);
  if (rows.length === 0) return <Message>{empty}</Message>;
  return (
    <div className={styles.table}>
      <DataTable
        label={label}
        columns={columns}
        rows={sortedRows}
        keyOf={keyOf}
        selectedKey={selectedKey}
        sort={sort}
        onSort={setSort}
        onSelect={onSelect}
      />
    </div>
  );
}
