// Legend of clusters: size, and what only its GPUs have in common. A click selects them.

import type { DiagnosisAnswer } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import type { DiagnosticsPage } from "../../state/diagnostics.ts";
import { clusterColor } from "./cluster-colors.ts";
import styles from "./cluster-legend.module.css";
import { useSetPage } from "./shown.ts";
import { formatPValue } from "./words.ts";

const MAX_CLUSTERS = 6;

export function ClusterLegend({ answer, page }: { answer: DiagnosisAnswer; page: DiagnosticsPage }) {
  const set = useSetPage();
  const { clusters, odd } = answer;
  if (clusters.length === 0 || answer.units.length < 2) return null;
  const selected = new Set(page.units);
  return (
    <ul className={styles.legend} aria-label="Clusters">
      {clusters.slice(0, MAX_CLUSTERS).map(({ label, size, units, explanation }) => {
        const isSelected = selected.size === size && units.every((unit) => selected.has(unit));
        return (
          <li key={label}>
            <button
              type="button"
              aria-pressed={isSelected}
              data-tip={
                explanation
                  ? `${explanation.sentence} (${formatPValue(explanation.p_value)}, adjusted information ${explanation.gain.toFixed(2)})`
                  : "Select these GPUs"
              }
              onClick={() => set({ units: isSelected || clusters.length === 1 ? [] : units })}
            >
              <i data-swatch={true} style={{ background: clusterColor(label) }} />
              {clusters.length === 1
                ? describeSingleCluster(size, odd.length)
                : (explanation?.sentence ?? formatPlural(size, "GPU"))}
            </button>
          </li>
        );
      })}
      {clusters.length > MAX_CLUSTERS && <li>{clusters.length - MAX_CLUSTERS} more</li>}
      {odd.length > 0 && (
        <li>
          <button type="button" onClick={() => set({ units: odd.map(({ unit }) => unit) })}>
            <i data-swatch={true} className={styles.odd} /> {odd.length === 1 ? "1 odd GPU" : `${odd.length} odd GPUs`}
          </button>
        </li>
      )}
      {selected.size > 0 && (
        <li>
          <button type="button" onClick={() => set({ units: [] })}>
            {formatPlural(selected.size, "GPU")} selected ×
          </button>
        </li>
      )}
    </ul>
  );
}

function describeSingleCluster(size: number, odd: number): string {
  return odd === 0
    ? `All ${formatPlural(size, "GPU")} behave alike`
    : `${formatPlural(size - odd, "GPU")} behave alike`;
}
