// Why the waiting workloads of a selection wait: the scheduler's reasons with the number of requested GPUs.

import { nameAt } from "../../../api/columns.ts";
import { formatPlural } from "../../../base/format.ts";
import { useWorkloads } from "../../../data/queries.ts";
import type { Units } from "../../../data/units.ts";
import { Card } from "../../../parts/panel/panel.tsx";
import styles from "./units-details.module.css";

const WAITING = ["waiting"] as const;
const MOST_REASONS = 5;

export function WhyTheyWait({ units, rows }: { units: Units; rows: readonly number[] }) {
  const list = useWorkloads(WAITING, true).value;
  if (!list) return null;
  const words = new Map(
    list.workloads.map((workload) => [workload.workload, workload.pending_reason_text ?? "No reason given."]),
  );
  const counts = new Map<string, number>();
  const workload = units.snapshot.names("workload");
  const state = units.snapshot.names("unit_state");
  for (const row of rows) {
    const reason = nameAt(state, row) === "requested" ? words.get(nameAt(workload, row) ?? "") : undefined;
    if (reason !== undefined) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  if (counts.size === 0) return null;
  const reasons = [...counts].sort((a, b) => b[1] - a[1]).slice(0, MOST_REASONS);
  return (
    <Card title="Why they wait">
      <ul className={styles.list}>
        {reasons.map(([reason, count]) => (
          <li key={reason}>
            {reason}
            <span>{formatPlural(count, "GPU")}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
