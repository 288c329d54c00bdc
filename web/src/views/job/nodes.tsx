// Node by node and GPU by GPU: the same numbers as in the terminal.

import type { JobCard, JobCardGpu, JobCardNode } from "../../api/generated.ts";
import { isKnown } from "../../base/format.ts";
import styles from "./job.module.css";
import { formatClock, formatPercent, formatSize } from "./words.ts";

export function Nodes({ card }: { card: JobCard }) {
  return (
    <section aria-label="Detailed utilization">
      <h2>Detailed utilization</h2>
      <table className={styles.nodes}>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">CPU time used / run time</th>
            <th scope="col">CPU</th>
            <th scope="col">Memory used / allocated</th>
            {card.gpus > 0 && <th scope="col">GPU</th>}
            {card.gpus > 0 && <th scope="col">GPU utilization</th>}
            {card.gpus > 0 && <th scope="col">GPU memory used / total</th>}
          </tr>
        </thead>
        {card.nodes.map((node) => (
          <NodeRows key={node.node} node={node} card={card} />
        ))}
      </table>
    </section>
  );
}

function NodeRows({ node, card }: { node: JobCardNode; card: JobCard }) {
  const gpus: readonly (JobCardGpu | null)[] = node.gpus.length > 0 ? node.gpus : [null];
  const cpuTime = isKnown(node.cpu_s) && isKnown(node.cores);
  return (
    <tbody>
      {gpus.map((gpu, row) => (
        <tr key={gpu?.unit ?? node.node}>
          {row === 0 && (
            <>
              <th scope="rowgroup" rowSpan={gpus.length}>
                {node.node}
              </th>
              <td rowSpan={gpus.length}>
                {cpuTime
                  ? `${formatClock(node.cpu_s ?? 0)} / ${formatClock(card.run_s * (node.cores ?? 0))}`
                  : "unknown"}
              </td>
              <td rowSpan={gpus.length} data-bad={node.cpu_s === 0 || undefined}>
                {isKnown(node.cpu_ratio) ? `${(100 * node.cpu_ratio).toFixed(1)}%` : "unknown"}
              </td>
              <td rowSpan={gpus.length}>
                {formatSize(node.memory_used_bytes)} / {formatSize(node.memory_limit_bytes, true)}
              </td>
            </>
          )}
          {card.gpus > 0 && <td>{gpu?.index ?? "unknown"}</td>}
          {card.gpus > 0 && (
            <td data-bad={gpu?.util_ratio === 0 || undefined}>
              {gpu === null ? "unknown" : formatPercent(gpu.util_ratio)}
              {gpu?.util_ratio === 0 && " not used"}
            </td>
          )}
          {card.gpus > 0 && (
            <td>
              {gpu === null
                ? "unknown"
                : `${formatSize(gpu.memory_used_bytes)} / ${formatSize(gpu.memory_total_bytes, true)}`}
            </td>
          )}
        </tr>
      ))}
    </tbody>
  );
}
