// Filters waiting workloads by partition and search text.

import type { QueueRow } from "../../../api/generated.ts";
import { makeSearch } from "../../../base/search.ts";
import type { SchedulingPage } from "../../../state/scheduling.ts";

export function filterQueue(
  rows: readonly QueueRow[],
  { queue, text }: Pick<SchedulingPage, "queue" | "text">,
): readonly QueueRow[] {
  const matchesText = makeSearch(text, listTexts, readNamed);
  return rows.filter((row) => (queue === "" || row.partition === queue) && matchesText(row));
}

function listTexts(row: QueueRow): readonly (string | null)[] {
  const { workload, name, user, project, partition, machine_type, qos, reason, reason_text } = row;
  return [workload, name, user, project, partition, machine_type, qos, reason, reason_text];
}

function readNamed(row: QueueRow, name: string): string | number | null | undefined {
  const { workload, user, project, partition, machine_type, qos, reason, gpus, nodes, priority } = row;
  const named = {
    workload,
    name: row.name,
    user,
    project,
    partition,
    type: machine_type,
    qos,
    reason,
    gpus,
    nodes,
    priority,
    waited: row.waited_s,
    limit: row.limit_s,
  };
  return Object.hasOwn(named, name) ? named[name as keyof typeof named] : undefined;
}
