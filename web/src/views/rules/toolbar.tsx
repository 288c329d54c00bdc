// Toolbar above the list: violations or rules, search, selected users and projects, and export.

import type { ViolationAnswer } from "../../api/generated.ts";
import { formatCsv } from "../../base/csv.ts";
import { downloadText } from "../../base/download.ts";
import { formatCount } from "../../base/format.ts";
import { SEARCH_HINT } from "../../base/search.ts";
import { changeRulesPage } from "../../state/changes.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { type RulesPage, toggled } from "../../state/violations.ts";
import { Chip, Chips } from "../../widgets/chip.tsx";
import { ExportMenu } from "../../widgets/export-menu.tsx";
import { RowCount } from "../../widgets/row-count.tsx";
import { Segmented } from "../../widgets/segmented.tsx";
import { TextSearch } from "../../widgets/text-search.tsx";
import styles from "./rules.module.css";
import { violationColumns } from "./table/violation-columns.tsx";
import { UNKNOWN_NAME } from "./words.ts";

interface ToolbarProps {
  readonly page: RulesPage;
  readonly rows: readonly ViolationAnswer[] | undefined;
  /** How many violations there are without filters. */
  readonly total: number | undefined;
  readonly rules: number;
}

export function Toolbar({ page, rows, total, rules }: ToolbarProps) {
  const change = useChangeScreen();
  return (
    <div className={styles.toolbar}>
      <Segmented
        label="Show"
        name="shows"
        value={page.shows}
        options={[
          { value: "violations", title: "Violations", count: total === undefined ? undefined : formatCount(total) },
          { value: "rules", title: "Rules", count: rules > 0 ? formatCount(rules) : undefined },
        ]}
        onChange={(shows) => change(changeRulesPage({ shows }))}
      />
      {page.shows === "violations" && (
        <>
          <TextSearch
            label="Filter violations"
            hint={SEARCH_HINT}
            value={page.text}
            onChange={(text) => change(changeRulesPage({ text }), "replace")}
          />
          <FilterChips page={page} />
          {rows && total !== undefined && (
            <RowCount
              words={
                rows.length === total ? formatCount(total) : `${formatCount(rows.length)} of ${formatCount(total)}`
              }
            >
              <ExportMenu what="these violations" files={{ csv: () => exportCsv(rows) }} />
            </RowCount>
          )}
        </>
      )}
    </div>
  );
}

/** The selected users and projects: the list on the left may show only the other kind. */
function FilterChips({ page }: { page: RulesPage }) {
  const change = useChangeScreen();
  const chips = [
    ...page.users.map((name) => ({
      name,
      title: "user",
      clear: () => change(changeRulesPage({ users: toggled(page.users, name) })),
    })),
    ...page.projects.map((name) => ({
      name,
      title: "project",
      clear: () => change(changeRulesPage({ projects: toggled(page.projects, name) })),
    })),
  ];
  if (chips.length === 0) return null;
  return (
    <Chips>
      {chips.map(({ name, title, clear }) => (
        <Chip key={`${title} ${name}`} aria-label={`Show all, not only ${title} ${name}`} onClick={clear}>
          <span>
            {title} {name || UNKNOWN_NAME}
          </span>
        </Chip>
      ))}
    </Chips>
  );
}

function exportCsv(rows: readonly ViolationAnswer[]): void {
  const columns = violationColumns(new Map());
  const text = formatCsv(
    columns.map(({ key }) => key),
    rows.map((row) => columns.map((column) => column.csv(row))),
  );
  downloadText("clusterscape-violations.csv", text, "text/csv");
}
