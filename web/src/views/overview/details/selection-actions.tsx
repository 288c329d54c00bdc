// Actions on a selection: filter to it, show it as a table, export it.

import { nameAt } from "../../../api/columns.ts";
import type { Units } from "../../../data/units.ts";
import { showTable, showWithin } from "../../../state/changes.ts";
import type { Selection } from "../../../state/selection.ts";
import { useChangeScreen, useScreen } from "../../../state/use-screen.ts";
import { Button } from "../../../widgets/button.tsx";
import { ExportMenu } from "../../../widgets/export-menu.tsx";
import { exportCsv } from "../row-count.tsx";
import { unitTable } from "../tables/unit-table.tsx";
import styles from "./units-details.module.css";
import { useParquet } from "./use-parquet.ts";

interface SelectionActionsProps {
  readonly units: Units;
  readonly rows: readonly number[];
  readonly selection: Selection;
}

export function SelectionActions({ units, rows, selection }: SelectionActionsProps) {
  const change = useChangeScreen();
  const { within } = useScreen();
  const [problem, saveParquet] = useParquet();
  const isOnly = within?.kind === selection.kind && within.key === selection.key;
  const showOnly = () => change(showWithin(isOnly ? null : selection));
  const showRows = () => change((screen) => showTable("units")(showWithin(selection)(screen)));
  const unit = units.snapshot.names("unit");
  return (
    <>
      <Button onClick={showOnly}>{isOnly ? "Show all again" : "Filter to these"}</Button>
      <Button onClick={showRows}>Show as table</Button>
      <ExportMenu
        what="the selected units"
        isWord
        files={{
          csv: () => exportCsv("units", unitTable(units), rows),
          parquet: () => saveParquet(rows.map((row) => nameAt(unit, row) ?? "")),
        }}
      />
      {problem && (
        <p role="alert" className={styles.note}>
          {problem}
        </p>
      )}
    </>
  );
}
