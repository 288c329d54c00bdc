// The cluster in one line: what there is, how much of it is held, how well it is used, who waits.

import type { ReactNode } from "react";
import type { ClusterSummary } from "../../api/generated.ts";
import { formatCount, formatPlural, formatRatio, formatWatts } from "../../base/format.ts";
import { rampColor } from "../../base/ramp.ts";
import { describeShare, StackedBar } from "../../widgets/stacked-bar.tsx";
import styles from "./summary-strip.module.css";

export function SummaryStrip({ cluster }: { cluster: ClusterSummary }) {
  const { units } = cluster;
  const block = largestBlock(cluster);
  return (
    <div className={styles.strip}>
      <Figure value={formatCount(units.total)} label={`GPUs on ${formatPlural(cluster.nodes, "node")}`} />
      <div className={styles.share}>
        <StackedBar share={units} />
        <span>{describeShare(units)}</span>
      </div>
      <Figure
        value={
          <>
            {cluster.gpu_util_ratio !== null && <i style={{ background: rampColor(cluster.gpu_util_ratio) }} />}
            {formatRatio(cluster.gpu_util_ratio)}
          </>
        }
        label="utilisation of allocated"
      />
      <Figure value={formatWatts(cluster.power_watts)} label="GPU power" />
      <Figure value={formatCount(cluster.running)} label="running" />
      <Figure
        value={
          <>
            {formatCount(cluster.waiting)}
            {cluster.waiting > 0 && <small> · {formatPlural(cluster.waiting_gpus, "GPU")}</small>}
          </>
        }
        label="waiting"
      />
      <Figure
        value={formatPlural(block.size, "GPU")}
        label={block.partition ? `largest free block, in ${block.partition}` : "largest free block"}
        tip="The most free GPUs on one node: the largest one-node workload that can start now"
        isShort={block.isShort}
      />
    </div>
  );
}

/** Short: somebody waits, and though a whole node's worth of GPUs is free, no node has so many. */
function largestBlock({ partitions, waiting, units, nodes }: ClusterSummary) {
  const best = partitions.toSorted((a, b) => b.largest_free_block - a.largest_free_block)[0];
  const size = best?.largest_free_block ?? 0;
  return {
    size,
    partition: size > 0 && partitions.length > 1 ? best?.name : undefined,
    isShort: waiting > 0 && nodes > 0 && size < units.total / nodes && units.free >= units.total / nodes,
  };
}

interface FigureProps {
  readonly value: ReactNode;
  readonly label: string;
  readonly tip?: string;
  readonly isShort?: boolean;
}

function Figure({ value, label, tip, isShort = false }: FigureProps) {
  return (
    <div className={styles.figure} data-tip={tip} data-short={isShort || undefined}>
      <b>{value}</b>
      <span>{label}</span>
    </div>
  );
}

export function SummaryPlaceholder() {
  return (
    <div className={styles.strip} role="status" aria-label="Loading the summary">
      {[64, 220, 96, 72, 56, 88, 120].map((width) => (
        <span key={width} className={styles.placeholder} style={{ width }} />
      ))}
    </div>
  );
}
