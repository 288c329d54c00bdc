// The toolbar above the picture or table: which of them, search, filters.

import * as Popover from "@radix-ui/react-popover";
import type { ReactNode } from "react";
import { formatCount } from "../../base/format.ts";
import { SEARCH_HINT } from "../../base/search.ts";
import { searchFor, showTable } from "../../state/changes.ts";
import { type Screen, TABLE_NAMES, type TableName } from "../../state/screen.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import { Icon } from "../../widgets/icon.tsx";
import { PopupContent } from "../../widgets/popup.tsx";
import { Segmented } from "../../widgets/segmented.tsx";
import { TextSearch } from "../../widgets/text-search.tsx";
import styles from "./toolbar.module.css";

const TITLES: Readonly<Record<TableName, string>> = {
  picture: "Picture",
  workloads: "Workloads",
  units: "Units",
  nodes: "Nodes",
};

interface ToolbarProps {
  readonly screen: Screen;
  /** Filters for screens that are too narrow to show them next to the table. */
  readonly filters: ReactNode;
  readonly counts: Readonly<Record<TableName, number | undefined>>;
  /** What the marks of the picture mean. */
  readonly rules: ReactNode;
  /** The conditions in force. */
  readonly chips: ReactNode;
  /** What stands at the right end. */
  readonly children: ReactNode;
}

export function Toolbar({ screen, counts, filters, rules, chips, children }: ToolbarProps) {
  const change = useChangeScreen();
  return (
    <div className={styles.toolbar}>
      <Segmented
        label="Show"
        name="table"
        value={screen.table}
        options={TABLE_NAMES.map((value) => ({
          value,
          title: TITLES[value],
          count: counts[value] === undefined ? undefined : formatCount(counts[value]),
        }))}
        onChange={(table) => change(showTable(table))}
      />
      <TextSearch
        label={`Filter ${screen.table === "picture" ? "units" : screen.table}`}
        hint={SEARCH_HINT}
        value={screen.text}
        onChange={(text) => change(searchFor(text), "replace")}
      />
      <Popover.Root>
        <Popover.Trigger asChild>
          <Button className={styles.filterButton}>
            <Icon name="filter" size={14} /> Filters
          </Button>
        </Popover.Trigger>
        <PopupContent className={styles.filters} align="end">
          {filters}
        </PopupContent>
      </Popover.Root>
      <div className={styles.rules}>{rules}</div>
      {chips}
      {children}
    </div>
  );
}
