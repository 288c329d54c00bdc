// The rule results of the selection: now with measured values, at a past minute only which rules were broken.

import { nameAt } from "../../../api/columns.ts";
import type { Units } from "../../../data/units.ts";
import { Card } from "../../../parts/panel/panel.tsx";
import { RowRules } from "../../../parts/rules/row-rules.tsx";
import { WorkloadRules } from "../../../parts/rules/workload-rules.tsx";
import { useScreen } from "../../../state/use-screen.ts";

interface RulesCardProps {
  readonly units: Units | undefined;
  readonly rows: readonly number[];
  /** The workload whose results are shown; null: only counts of broken rules. */
  readonly workload: string | null;
  readonly unit?: string | null;
}

export function RulesCard({ units, rows, workload, unit = null }: RulesCardProps) {
  const isPast = useScreen().at !== null;
  if (workload !== null && !isPast) {
    return (
      <Card title="Rules">
        <WorkloadRules workload={workload} unit={unit} />
      </Card>
    );
  }
  const rules = units?.rules;
  if (rules === undefined || rules.snapshot !== units?.snapshot) return null;
  const { snapshot } = rules;
  const isHeld = rows.some((row) => nameAt(snapshot.names("unit_state"), row) === "allocated");
  return isHeld ? (
    <Card title="Rules">
      <RowRules rules={rules} rows={rows} />
    </Card>
  ) : null;
}
