// The table, or an empty state.

import { clearFilters, select, sortBy } from "../../state/changes.ts";
import type { Screen, Sort, TableName } from "../../state/screen.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import { DataTable, type TableSort } from "../../widgets/data-table/data-table.tsx";
import { Message } from "../../widgets/frame.tsx";
import styles from "./table-area.module.css";
import type { TableSpec } from "./tables/table-spec.ts";

interface TableAreaProps<Row> {
  readonly screen: Screen;
  readonly spec: TableSpec<Row>;
  /** Sorted and filtered. */
  readonly rows: readonly Row[];
  readonly sort: Sort;
}

export function TableArea<Row>({ screen, spec, rows, sort }: TableAreaProps<Row>) {
  const change = useChangeScreen();
  const onSort = (next: TableSort) => {
    const { column, descending } = spec.initialSort;
    change(sortBy(next.column === column && next.descending === descending ? null : next));
  };
  if (rows.length === 0) return <NoRows table={screen.table} isFiltered={spec.rows.length > 0} />;
  return (
    <div className={styles.table}>
      <DataTable
        key={screen.table}
        label={screen.table}
        columns={spec.columns}
        rows={rows}
        keyOf={spec.keyOf}
        selectedKey={selectedKey(screen)}
        sort={sort}
        onSort={onSort}
        onSelect={(row, isWalking) => change(select(spec.selectionOf(row)), isWalking ? "replace" : "push")}
      />
    </div>
  );
}

const KIND_OF: Readonly<Record<TableName, string>> = {
  picture: "unit",
  workloads: "workload",
  units: "unit",
  nodes: "node",
};

function selectedKey({ selection, table }: Screen): string | null {
  return selection?.kind === KIND_OF[table] ? selection.key : null;
}

function NoRows({ table, isFiltered }: { table: TableName; isFiltered: boolean }) {
  const change = useChangeScreen();
  return (
    <Message role="status">
      <strong>{isFiltered ? `No ${table} match` : `No ${table} yet`}</strong>
      <span>
        {isFiltered ? "Remove a filter or change the search." : "They appear as soon as a source reports them."}
      </span>
      {isFiltered && <Button onClick={() => change(clearFilters)}>Clear filters</Button>}
    </Message>
  );
}
