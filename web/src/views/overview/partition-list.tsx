// The list of partitions; a click filters to one.

import type { PartitionSummary } from "../../api/generated.ts";
import { formatCount, formatPlural, formatRatio } from "../../base/format.ts";
import { StackedBar } from "../../widgets/stacked-bar.tsx";
import { Tag } from "../../widgets/tag.tsx";
import styles from "./partition-list.module.css";

export interface PartitionListProps {
  readonly partitions: readonly PartitionSummary[];
  readonly chosen: readonly string[];
  onToggle(partition: string): void;
}

export function PartitionList({ partitions, chosen, onToggle }: PartitionListProps) {
  if (partitions.length === 0) return null;
  return (
    <section className={styles.list} aria-label="Partitions">
      <h2>Partitions</h2>
      {partitions.map((partition) => (
        <button
          key={partition.name}
          type="button"
          aria-pressed={chosen.includes(partition.name)}
          onClick={() => onToggle(partition.name)}
        >
          <span className={styles.head}>
            <b title={partition.name}>{partition.name}</b>
            {!partition.is_up && <Tag tone="bad">closed</Tag>}
            <small title={partition.machine_types.join(", ")}>{partition.machine_types.join(", ")}</small>
            {partition.shared_nodes > 0 && (
              <small className={styles.shared} data-tip={sharedTip(partition)}>
                shared
              </small>
            )}
            <span data-tip="GPUs allocated, of all GPUs">
              {formatCount(partition.units.allocated)}
              <small>/{formatCount(partition.units.total)}</small>
            </span>
          </span>
          <StackedBar share={partition.units} size={6} />
          <span className={styles.numbers}>
            <span data-tip="Mean utilization of allocated GPUs">
              {formatRatio(partition.gpu_util_ratio)}
              <small> used</small>
            </span>
            <span data-tip={waitingTip(partition)}>
              {formatCount(partition.waiting)}
              <small> waiting</small>
            </span>
            <span data-tip="Most free GPUs on one node: the largest single-node workload that can start now">
              <small>block </small>
              {partition.largest_free_block}
            </span>
          </span>
        </button>
      ))}
    </section>
  );
}

function sharedTip({ shared_nodes, nodes, shared_with }: PartitionSummary): string {
  const some = shared_nodes === nodes ? "All its nodes are" : `${formatPlural(shared_nodes, "node")} of ${nodes} are`;
  return `${some} in ${shared_with.join(", ")}, too: the picture shows each GPU once, but each of its partitions counts it`;
}

function waitingTip({ waiting, waiting_gpus }: PartitionSummary): string {
  if (waiting === 0) return "No workloads waiting";
  return `${formatPlural(waiting, "workload")} waiting for ${formatPlural(waiting_gpus, "GPU")}`;
}
