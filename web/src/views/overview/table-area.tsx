// The table in the middle: which one, what is searched for, what is filtered away, and the rows themselves.

import * as Popover from "@radix-ui/react-popover";
import { type ReactNode, useDeferredValue, useMemo } from "react";
import { formatCsv } from "../../base/csv.ts";
import { downloadText } from "../../base/download.ts";
import { formatCount } from "../../base/format.ts";
import { clearFilters, searchFor, select, showTable, sortBy, toggleFilter } from "../../state/changes.ts";
import { FILTER_NAMES, type Screen, type TableName } from "../../state/screen.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button, IconButton } from "../../widgets/button.tsx";
import { DataTable, type TableSort } from "../../widgets/data-table/data-table.tsx";
import { Icon } from "../../widgets/icon.tsx";
import { Segmented } from "../../widgets/segmented.tsx";
import { TextSearch } from "../../widgets/text-search.tsx";
import styles from "./table-area.module.css";
import { orderRows, type ShownRows, type TableSpec } from "./tables/table-spec.ts";
import { stateWords } from "./words.ts";

interface TableAreaProps<Row> {
  readonly screen: Screen;
  readonly spec: TableSpec<Row>;
  readonly shown: ShownRows<Row>;
  /** How many there are where not all were fetched. */
  readonly total: number;
}

export function TableArea<Row>({ screen, spec, shown, total }: TableAreaProps<Row>) {
  const change = useChangeScreen();
  const sort = screen.sort ?? spec.initialSort;
  const rows = useMemo(() => orderRows(spec, shown.rows, sort), [spec, shown.rows, sort]);
  const onSort = (next: TableSort) => {
    const { column, descending } = spec.initialSort;
    change(sortBy(next.column === column && next.descending === descending ? null : next));
  };
  return (
    <>
      <div className={styles.count} role="status">
        {countWords(rows.length, spec.rows.length, total)}
        <IconButton
          icon="download"
          label="Download these rows as CSV"
          onClick={() => exportCsv(screen.table, spec, rows)}
        />
      </div>
      {rows.length === 0 ? (
        <NoRows table={screen.table} isFiltered={spec.rows.length > 0} />
      ) : (
        <div className={styles.table}>
          <DataTable
            key={screen.table}
            label={screen.table}
            columns={spec.columns}
            rows={rows}
            keyOf={spec.keyOf}
            selectedKey={screen.selection && spec.rows.length > 0 ? selectedKey(screen) : null}
            sort={sort}
            onSort={onSort}
            onSelect={(row, isWalking) => change(select(spec.selectionOf(row)), isWalking ? "replace" : "push")}
          />
        </div>
      )}
    </>
  );
}

const KIND_OF: Readonly<Record<TableName, string>> = { workloads: "workload", units: "unit", nodes: "node" };

function selectedKey({ selection, table }: Screen): string | null {
  return selection?.kind === KIND_OF[table] ? selection.key : null;
}

function countWords(shown: number, fetched: number, total: number): string {
  if (fetched < total) return `${formatCount(shown)} of the newest ${formatCount(fetched)}, of ${formatCount(total)}`;
  return shown === fetched ? `${formatCount(shown)} rows` : `${formatCount(shown)} of ${formatCount(fetched)}`;
}

function NoRows({ table, isFiltered }: { table: TableName; isFiltered: boolean }) {
  const change = useChangeScreen();
  return (
    <div className={styles.none} role="status">
      <strong>{isFiltered ? `No ${table} match` : `No ${table} yet`}</strong>
      <span>{isFiltered ? "Loosen a filter or the search." : "They appear as soon as a source reports them."}</span>
      {isFiltered && <Button onClick={() => change(clearFilters)}>Clear filters</Button>}
    </div>
  );
}

function exportCsv<Row>(table: TableName, spec: TableSpec<Row>, rows: readonly Row[]): void {
  const header = spec.columns.map((column) => column.key);
  const text = formatCsv(
    header,
    rows.map((row) => spec.columns.map((column) => column.csv(row))),
  );
  downloadText(`clusterscape-${table}.csv`, text, "text/csv");
}

interface ToolbarProps {
  readonly screen: Screen;
  /** Filters for screens too narrow to show them beside the table. */
  readonly filters: ReactNode;
  readonly counts: Readonly<Record<TableName, number | undefined>>;
}

export function Toolbar({ screen, counts, filters }: ToolbarProps) {
  const change = useChangeScreen();
  const titles: Readonly<Record<TableName, string>> = { workloads: "Workloads", units: "Units", nodes: "Nodes" };
  return (
    <div className={styles.toolbar}>
      <Segmented
        label="Table of"
        name="table"
        value={screen.table}
        options={(["workloads", "units", "nodes"] as const).map((value) => ({
          value,
          title: titles[value],
          count: counts[value] === undefined ? undefined : formatCount(counts[value]),
        }))}
        onChange={(table) => change(showTable(table))}
      />
      <TextSearch
        label={`Filter ${screen.table}`}
        value={screen.text}
        onChange={(text) => change(searchFor(text), "replace")}
      />
      <Popover.Root>
        <Popover.Trigger asChild>
          <Button className={styles.filterButton}>
            <Icon name="filter" size={14} /> Filters
          </Button>
        </Popover.Trigger>
        <Popover.Portal>
          <Popover.Content className={styles.filters} align="end" sideOffset={6} collisionPadding={8}>
            {filters}
          </Popover.Content>
        </Popover.Portal>
      </Popover.Root>
      <Chips screen={screen} />
    </div>
  );
}

function Chips({ screen }: { screen: Screen }) {
  const change = useChangeScreen();
  const chips = FILTER_NAMES.flatMap((name) => screen.filters[name].map((value) => ({ name, value })));
  if (chips.length === 0) return null;
  return (
    <ul className={styles.chips} aria-label="Filters in force">
      {chips.map(({ name, value }) => (
        <li key={`${name}:${value}`}>
          <button
            type="button"
            aria-label={`Remove filter ${name} ${value}`}
            onClick={() => change(toggleFilter(name, value))}
          >
            <small>{name}</small>
            {name === "state" ? stateWords(value) : value}
            <Icon name="close" size={10} />
          </button>
        </li>
      ))}
      <li>
        <button type="button" className={styles.clear} onClick={() => change(clearFilters)}>
          Clear
        </button>
      </li>
    </ul>
  );
}

/** Typing stays quick however long the table is: the rows may lag a moment behind the letters. */
export function useNarrowing(screen: Screen) {
  const filters = useDeferredValue(screen.filters);
  const text = useDeferredValue(screen.text);
  return useMemo(() => ({ filters, text }), [filters, text]);
}
