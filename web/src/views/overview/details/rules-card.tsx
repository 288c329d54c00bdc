// What the rules say of what is selected: in the present with the numbers behind it, of a past minute who broke which.

import { nameAt } from "../../../api/columns.ts";
import type { Units } from "../../../data/units.ts";
import { Card } from "../../../parts/panel/panel.tsx";
import { RowRules } from "../../../parts/rules/row-rules.tsx";
import { WorkloadRules } from "../../../parts/rules/workload-rules.tsx";
import { useScreen } from "../../../state/use-screen.ts";

interface RulesCardProps {
  readonly units: Units | undefined;
  readonly rows: readonly number[];
  /** Whose verdicts these are; null: only who breaks what is told. */
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
  const said = units?.rules;
  if (said === undefined || said.snapshot !== units?.snapshot) return null;
  const { snapshot } = said;
  const isHeld = rows.some((row) => nameAt(snapshot.names("unit_state"), row) === "allocated");
  return isHeld ? (
    <Card title="Rules">
      <RowRules rules={said} rows={rows} />
    </Card>
  ) : null;
}
