// The table of violations, or why it is empty.

import { useMemo } from "react";
import type { RuleList, ViolationAnswer } from "../../../api/generated.ts";
import type { RuleColors } from "../../../parts/rules/rule-colors.ts";
import { changeRulesPage, selectViolation } from "../../../state/changes.ts";
import type { Selection } from "../../../state/screen.ts";
import { useChangeScreen, useScreen } from "../../../state/use-screen.ts";
import { INITIAL_RULES_PAGE, VIOLATION_COLUMNS } from "../../../state/violations.ts";
import { Button } from "../../../widgets/button.tsx";
import { sortRows } from "../../../widgets/data-table/columns.ts";
import { DataTable } from "../../../widgets/data-table/data-table.tsx";
import { Message } from "../../../widgets/frame.tsx";
import { Icon } from "../../../widgets/icon.tsx";
import { SPAN_WORDS } from "../words.ts";
import { violationColumns } from "./violation-columns.tsx";
import styles from "./violation-table.module.css";

interface ViolationTableProps {
  /** Violations that match the filters. */
  readonly rows: readonly ViolationAnswer[];
  /** Number of violations without filters. */
  readonly total: number;
  readonly colors: RuleColors;
  readonly evaluation: Evaluation | undefined;
}

function isSelected({ workload, node }: ViolationAnswer, selection: Selection | null): boolean {
  if (selection?.kind === "node") return node === selection.key;
  return selection?.kind === "workload" && workload === selection.key;
}

/** Whether rules are evaluated: perhaps none is enabled, or there is no workload with GPUs yet. */
export type Evaluation = "no-rules" | "not-yet" | "running";

export function findEvaluation({ rules, judged_at }: RuleList, gpus: number | undefined): Evaluation {
  if (!rules.some(({ is_enabled }) => is_enabled)) return "no-rules";
  return judged_at === null || gpus === 0 ? "not-yet" : "running";
}

export function ViolationTable({ rows, total, colors, evaluation }: ViolationTableProps) {
  const { rulesPage: page, selection } = useScreen();
  const change = useChangeScreen();
  const columns = useMemo(() => violationColumns(colors), [colors]);
  const { sort } = page;
  const sortedRows = useMemo(() => sortRows(rows, columns, sort), [rows, columns, sort]);
  if (rows.length === 0) return <NoViolations isFiltered={total > 0} evaluation={evaluation} />;
  const selected = sortedRows.find(
    (row) => isSelected(row, selection) && (page.rule === null || row.rule === page.rule),
  );
  return (
    <div className={styles.table}>
      <DataTable
        label="Violations"
        columns={columns}
        rows={sortedRows}
        keyOf={keyOf}
        selectedKey={selected ? keyOf(selected) : null}
        sort={sort}
        onSort={({ column, descending }) => {
          const sortColumn = VIOLATION_COLUMNS.find((name) => name === column);
          if (sortColumn) change(changeRulesPage({ sort: { column: sortColumn, descending } }));
        }}
        onSelect={(row, isWalking) => change(selectViolation(row.workload, row.rule), isWalking ? "replace" : "push")}
      />
    </div>
  );
}

function keyOf({ rule, workload }: ViolationAnswer): string {
  return `${rule} ${workload}`;
}

function NoViolations({ isFiltered, evaluation }: { isFiltered: boolean; evaluation: Evaluation | undefined }) {
  const { rulesPage: page } = useScreen();
  const change = useChangeScreen();
  if (isFiltered) {
    const { shows, span, range, sort } = page;
    return (
      <Message role="status">
        <strong>No violations match</strong>
        <span>Change or clear the filters.</span>
        <Button onClick={() => change(changeRulesPage({ ...INITIAL_RULES_PAGE, shows, span, range, sort }))}>
          Clear filters
        </Button>
      </Message>
    );
  }
  if (evaluation === "no-rules") {
    return (
      <Message role="status">
        <strong>No rule is enabled</strong>
        <span>Enable a rule or create your own.</span>
        <Button onClick={() => change(changeRulesPage({ shows: "rules" }))}>Show rules</Button>
      </Message>
    );
  }
  if (evaluation === "not-yet") {
    return (
      <Message role="status">
        <strong>Rules are not evaluated yet</strong>
        <span>Evaluation starts when sources report workloads and their GPUs.</span>
        <Button onClick={() => change(changeRulesPage({ shows: "rules" }))}>Show rules</Button>
      </Message>
    );
  }
  return (
    <Message role="status">
      <span data-tone="ok">
        <Icon name="check" size={20} />
      </span>
      <strong>No violations</strong>
      <span>
        {page.range
          ? "No workload broke a rule in the selected time range."
          : `No workload broke a rule in the last ${SPAN_WORDS[page.span]}.`}
      </span>
      {page.range && (
        <Button onClick={() => change(changeRulesPage({ range: null }))}>Show the whole time range</Button>
      )}
      {!page.range && page.span !== "30d" && (
        <Button onClick={() => change(changeRulesPage({ span: "30d" }))}>Show 30 days</Button>
      )}
    </Message>
  );
}
