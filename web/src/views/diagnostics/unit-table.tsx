// The GPUs as a table: cluster, statistics and oddness; and the same as CSV.

import type { Histograms } from "../../api/diagnosis-client.ts";
import type { DiagnosisAnswer } from "../../api/generated.ts";
import { formatCsv } from "../../base/csv.ts";
import { formatCount } from "../../base/format.ts";
import type { DiagnosticsPage } from "../../state/diagnostics.ts";
import { clusterColor } from "./cluster-colors.ts";
import { describeUnit, type UnitStatistics } from "./distributions.ts";
import { combine } from "./gpu-panel.tsx";
import { useSetPage } from "./shown.ts";
import styles from "./unit-table.module.css";
import { findMetric, formatValue } from "./words.ts";

interface UnitTableProps {
  readonly answer: DiagnosisAnswer;
  readonly page: DiagnosticsPage;
  readonly histograms: Histograms | null;
}

const NO_STATISTICS: UnitStatistics = { samples: 0, p5: null, median: null, p95: null };

export function UnitTable({ answer, page, histograms }: UnitTableProps) {
  const set = useSetPage();
  const metric = findMetric(answer.metrics, answer.metric);
  const selected = new Set(page.units);
  const rows = [...answer.units].sort((a, b) => (a.odd_rank ?? 1e9) - (b.odd_rank ?? 1e9));
  const odd = new Map(answer.odd.map((oddUnit) => [oddUnit.unit, oddUnit]));
  return (
    <div className={styles.place}>
      <table>
        <caption>{metric?.label} by GPU, most unusual first</caption>
        <thead>
          <tr>
            <th>GPU</th>
            <th>Rank</th>
            <th>Local</th>
            <th>Cluster</th>
            <th>p5</th>
            <th>Median</th>
            <th>p95</th>
            <th>Samples</th>
            <th>Oddness</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((unit) => {
            const { samples, p5, median, p95 } = histograms ? describeUnit(histograms, unit.unit) : NO_STATISTICS;
            return (
              <tr key={unit.unit} aria-selected={selected.has(unit.unit)}>
                <th scope="row">
                  <button
                    type="button"
                    onClick={() => set({ units: combine(page.units, [unit.unit], "toggle", answer.units.length) })}
                  >
                    {unit.unit}
                  </button>
                </th>
                <td>{unit.global_rank ?? "–"}</td>
                <td>{unit.local_rank ?? "–"}</td>
                <td>
                  <i data-swatch={true} style={{ background: clusterColor(unit.cluster) }} />{" "}
                  {unit.cluster === null ? "–" : unit.cluster + 1}
                </td>
                <td>{formatValue(p5, metric?.unit)}</td>
                <td>{formatValue(median, metric?.unit)}</td>
                <td>{formatValue(p95, metric?.unit)}</td>
                <td>{formatCount(samples)}</td>
                <td>{odd.get(unit.unit)?.distance.toPrecision(3) ?? "not odd"}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

export function toCsv(answer: DiagnosisAnswer, histograms: Histograms | null): string {
  const odd = new Map(answer.odd.map((oddUnit) => [oddUnit.unit, oddUnit]));
  const header = [
    "unit",
    "node",
    "index",
    "global_rank",
    "local_rank",
    "metric",
    "cluster",
    "odd_rank",
    "odd_distance",
    "odd_p_value",
    "samples",
    "p5",
    "median",
    "p95",
    "rules",
  ];
  return formatCsv(
    header,
    answer.units.map((unit) => {
      const { samples, p5, median, p95 } = histograms ? describeUnit(histograms, unit.unit) : NO_STATISTICS;
      const oddUnit = odd.get(unit.unit);
      return [
        unit.unit,
        unit.node,
        unit.index,
        unit.global_rank,
        unit.local_rank,
        answer.metric,
        unit.cluster === null ? null : unit.cluster + 1,
        unit.odd_rank,
        oddUnit?.distance,
        oddUnit?.p_value,
        samples,
        p5,
        median,
        p95,
        unit.rules.map(({ rule, state }) => `${rule}:${state}`).join(" "),
      ];
    }),
  );
}
