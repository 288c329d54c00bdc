// List of clusters: size, common properties and GPUs.

import type { DiagnosisAnswer, GpuCluster } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import type { DiagnosticsPage } from "../../state/diagnostics.ts";
import { clusterColor } from "./cluster-colors.ts";
import styles from "./findings.module.css";
import { PanelBox } from "./panel-box.tsx";
import { useSetPage } from "./shown.ts";
import { findMetric } from "./words.ts";

const MAX_NAMED = 24;

export function ClusterList({ answer, page }: { answer: DiagnosisAnswer; page: DiagnosticsPage }) {
  const set = useSetPage();
  const { clusters, metrics, metric } = answer;
  if (clusters.length === 0) return null;
  const label = findMetric(metrics, metric)?.label ?? metric;
  if (clusters.length === 1) {
    return (
      <PanelBox title={`Clusters by ${label}`}>
        <p>By {label}, all GPUs are alike.</p>
      </PanelBox>
    );
  }
  const selected = new Set(page.units);
  return (
    <PanelBox title={`Clusters by ${label}`} className={styles.panel}>
      <ul className={styles.list}>
        {clusters.map((cluster) => {
          const isSelected = selected.size === cluster.size && cluster.units.every((unit) => selected.has(unit));
          return (
            <li key={cluster.label} style={{ borderColor: clusterColor(cluster.label) }}>
              <button
                type="button"
                aria-pressed={isSelected}
                onClick={() => set({ units: isSelected ? [] : cluster.units })}
              >
                <b>{formatPlural(cluster.size, "GPU")}</b>
                <span>{cluster.explanation?.sentence ?? "No known property explains this cluster."}</span>
                <small>{nameUnits(cluster)}</small>
              </button>
            </li>
          );
        })}
      </ul>
    </PanelBox>
  );
}

export function nameUnits({ units, size }: Pick<GpuCluster, "units" | "size">): string {
  return units.slice(0, MAX_NAMED).join(", ") + (size > MAX_NAMED ? "…" : "");
}
