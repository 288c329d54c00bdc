// The violations themselves, or that there are none.

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
  /** Those that pass the filters. */
  readonly rows: readonly ViolationAnswer[];
  /** How many there are without any. */
  readonly total: number;
  readonly colors: RuleColors;
  readonly watch: Watch | undefined;
}

function isSelected({ workload, node }: ViolationAnswer, selection: Selection | null): boolean {
  if (selection?.kind === "node") return node === selection.key;
  return selection?.kind === "workload" && workload === selection.key;
}

/** Whether anything is watched for: no rule may be on, or there may be nothing to judge. */
export type Watch = "none" | "not-yet" | "watching";

export function judgeWatch({ rules, judged_at }: RuleList, gpus: number | undefined): Watch {
  if (!rules.some(({ is_enabled }) => is_enabled)) return "none";
  return judged_at === null || gpus === 0 ? "not-yet" : "watching";
}

export function ViolationTable({ rows, total, colors, watch }: ViolationTableProps) {
  const { rulesPage: page, selection } = useScreen();
  const change = useChangeScreen();
  const columns = useMemo(() => violationColumns(colors), [colors]);
  const { sort } = page;
  const ordered = useMemo(() => sortRows(rows, columns, sort), [rows, columns, sort]);
  if (rows.length === 0) return <NoViolations isFiltered={total > 0} watch={watch} />;
  const selected = ordered.find((row) => isSelected(row, selection) && (page.rule === null || row.rule === page.rule));
  return (
    <div className={styles.table}>
      <DataTable
        label="Violations"
        columns={columns}
        rows={ordered}
        keyOf={keyOf}
        selectedKey={selected ? keyOf(selected) : null}
        sort={sort}
        onSort={({ column, descending }) => {
          const known = VIOLATION_COLUMNS.find((name) => name === column);
          if (known) change(changeRulesPage({ sort: { column: known, descending } }));
        }}
        onSelect={(row, isWalking) => change(selectViolation(row.workload, row.rule), isWalking ? "replace" : "push")}
      />
    </div>
  );
}

function keyOf({ rule, workload }: ViolationAnswer): string {
  return `${rule} ${workload}`;
}

function NoViolations({ isFiltered, watch }: { isFiltered: boolean; watch: Watch | undefined }) {
  const { rulesPage: page } = useScreen();
  const change = useChangeScreen();
  if (isFiltered) {
    const { shows, span, range, sort } = page;
    return (
      <Message role="status">
        <strong>No violations match</strong>
        <span>Loosen a filter or the search.</span>
        <Button onClick={() => change(changeRulesPage({ ...INITIAL_RULES_PAGE, shows, span, range, sort }))}>
          Clear filters
        </Button>
      </Message>
    );
  }
  if (watch === "none") {
    return (
      <Message role="status">
        <strong>No rule is switched on</strong>
        <span>So nothing is watched for. Switch one on, or write your own.</span>
        <Button onClick={() => change(changeRulesPage({ shows: "rules" }))}>Show the rules</Button>
      </Message>
    );
  }
  if (watch === "not-yet") {
    return (
      <Message role="status">
        <strong>Nothing to judge yet</strong>
        <span>Rules judge workloads that hold GPUs, as soon as sources report both.</span>
        <Button onClick={() => change(changeRulesPage({ shows: "rules" }))}>Show the rules</Button>
      </Message>
    );
  }
  return (
    <Message role="status">
      <span data-tone="ok">
        <Icon name="check" size={20} />
      </span>
      <strong>All is well</strong>
      <span>
        {page.range
          ? "No workload broke a rule in the chosen time."
          : `No workload broke a rule in the last ${SPAN_WORDS[page.span]}.`}
      </span>
      {page.range && <Button onClick={() => change(changeRulesPage({ range: null }))}>Show all of the time</Button>}
      {!page.range && page.span !== "30d" && (
        <Button onClick={() => change(changeRulesPage({ span: "30d" }))}>Look at 30 days</Button>
      )}
    </Message>
  );
}
