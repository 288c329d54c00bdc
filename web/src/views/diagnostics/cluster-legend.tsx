// The clusters in words: how many GPUs, and what they and only they share. A click selects them.

import type { DiagnosisAnswer } from "../../api/generated.ts";
import { formatPlural } from "../../base/format.ts";
import type { DiagnosticsPage } from "../../state/diagnostics.ts";
import { clusterColor } from "./cluster-colors.ts";
import styles from "./cluster-legend.module.css";
import { useSetPage } from "./shown.ts";
import { sayP } from "./words.ts";

const MOST = 6;

export function ClusterLegend({ answer, page }: { answer: DiagnosisAnswer; page: DiagnosticsPage }) {
  const set = useSetPage();
  const { clusters, odd } = answer;
  if (clusters.length === 0 || answer.units.length < 2) return null;
  const held = new Set(page.units);
  return (
    <ul className={styles.legend} aria-label="Clusters">
      {clusters.slice(0, MOST).map(({ label, size, units, explanation }) => {
        const isHeld = held.size === size && units.every((unit) => held.has(unit));
        return (
          <li key={label}>
            <button
              type="button"
              aria-pressed={isHeld}
              data-tip={
                explanation
                  ? `${explanation.sentence} (${sayP(explanation.p_value)}, adjusted information ${explanation.gain.toFixed(2)})`
                  : "Select these GPUs"
              }
              onClick={() => set({ units: isHeld || clusters.length === 1 ? [] : units })}
            >
              <i data-swatch={true} style={{ background: clusterColor(label) }} />
              {clusters.length === 1
                ? sayOneCluster(size, odd.length)
                : (explanation?.sentence ?? formatPlural(size, "GPU"))}
            </button>
          </li>
        );
      })}
      {clusters.length > MOST && <li>{clusters.length - MOST} more</li>}
      {odd.length > 0 && (
        <li>
          <button type="button" onClick={() => set({ units: odd.map(({ unit }) => unit) })}>
            <i data-swatch={true} className={styles.odd} /> {odd.length === 1 ? "1 odd GPU" : `${odd.length} odd GPUs`}
          </button>
        </li>
      )}
      {held.size > 0 && (
        <li>
          <button type="button" onClick={() => set({ units: [] })}>
            {formatPlural(held.size, "GPU")} selected ×
          </button>
        </li>
      )}
    </ul>
  );
}

function sayOneCluster(size: number, odd: number): string {
  return odd === 0
    ? `All ${formatPlural(size, "GPU")} behave alike`
    : `${formatPlural(size - odd, "GPU")} behave alike`;
}
