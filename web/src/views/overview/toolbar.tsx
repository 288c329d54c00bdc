// What stands above the picture or table: which one, what is searched for, what is filtered away.

import * as Popover from "@radix-ui/react-popover";
import type { ReactNode } from "react";
import { formatCount } from "../../base/format.ts";
import { clearFilters, searchFor, showTable, toggleFilter } from "../../state/changes.ts";
import { FILTER_NAMES, type Screen, TABLE_NAMES, type TableName } from "../../state/screen.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import { Icon } from "../../widgets/icon.tsx";
import { Segmented } from "../../widgets/segmented.tsx";
import { TextSearch } from "../../widgets/text-search.tsx";
import styles from "./toolbar.module.css";
import { stateWords } from "./words.ts";

const TITLES: Readonly<Record<TableName, string>> = {
  picture: "Picture",
  workloads: "Workloads",
  units: "Units",
  nodes: "Nodes",
};

interface ToolbarProps {
  readonly screen: Screen;
  /** Filters for screens too narrow to show them beside the table. */
  readonly filters: ReactNode;
  readonly counts: Readonly<Record<TableName, number | undefined>>;
  /** What stands at the right end. */
  readonly children: ReactNode;
}

export function Toolbar({ screen, counts, filters, children }: ToolbarProps) {
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
      {children}
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
