// The number of shown rows, and the export menu.

import { formatCsv } from "../../base/csv.ts";
import { downloadText } from "../../base/download.ts";
import { formatCount } from "../../base/format.ts";
import type { TableName } from "../../state/screen.ts";
import { ExportMenu } from "../../widgets/export-menu.tsx";
import { RowCount } from "../../widgets/row-count.tsx";
import { useParquet } from "./details/use-parquet.ts";
import type { TableSpec } from "./tables/table-spec.ts";

interface RowCountProps<Row> {
  readonly table: TableName;
  readonly spec: TableSpec<Row>;
  readonly rows: readonly Row[];
  /** How many there are where not all were fetched. */
  readonly total: number;
}

export function TableRowCount<Row>({ table, spec, rows, total }: RowCountProps<Row>) {
  const [problem, saveParquet] = useParquet();
  return (
    <RowCount words={countWords(rows.length, spec.rows.length, total)}>
      {problem && <span role="alert">{problem}</span>}
      <ExportMenu
        what="these rows"
        files={{
          csv: () => exportCsv(table, spec, rows),
          ...(table === "units" ? { parquet: () => saveParquet(rows.map((row) => spec.keyOf(row))) } : {}),
        }}
      />
    </RowCount>
  );
}

function countWords(shown: number, fetched: number, total: number): string {
  if (fetched < total) return `${formatCount(shown)} of the newest ${formatCount(fetched)}, of ${formatCount(total)}`;
  return shown === fetched ? `${formatCount(shown)} rows` : `${formatCount(shown)} of ${formatCount(fetched)}`;
}

export function exportCsv<Row>(table: TableName, spec: TableSpec<Row>, rows: readonly Row[]): void {
  const header = spec.columns.map((column) => column.key);
  const text = formatCsv(
    header,
    rows.map((row) => spec.columns.map((column) => column.csv(row))),
  );
  downloadText(`clusterscape-${table}.csv`, text, "text/csv");
}
