// Compares two workloads, or two windows of one: differences as table and sentences, then GPUs, timelines and findings.

import type { DiagnosisAnswer, RuleAnswer } from "../../api/generated.ts";
import { formatCount, formatHours, formatPlural } from "../../base/format.ts";
import { useDiagnosis } from "../../data/diagnosis.ts";
import type { Compared, DiagnosticsPage } from "../../state/diagnostics.ts";
import { Frame } from "../../widgets/frame.tsx";
import styles from "./comparison.module.css";
import { describeDifferences } from "./differences.ts";
import { Findings } from "./findings.tsx";
import { GpuPanel } from "./gpu-panel.tsx";
import { formatEnergy } from "./head.tsx";
import { type SetPage, SetPageContext, useSetPage } from "./shown.ts";
import { TimelinePanel } from "./timeline-panel.tsx";
import { formatWindow } from "./words.ts";

interface ComparisonProps {
  readonly answer: DiagnosisAnswer;
  readonly page: DiagnosticsPage;
  readonly rules: readonly RuleAnswer[];
  readonly compared: Compared;
}

export function Comparison({ answer, page, rules, compared }: ComparisonProps) {
  const workload = compared.kind === "workload" ? compared.workload : answer.workload;
  const metric = page.metric ?? answer.metric;
  const window = compared.kind === "window" ? compared.window : null;
  const units = compared.kind === "window" ? page.units : [];
  const otherPage: DiagnosticsPage = { ...page, workload, metric, window, units, count: null };
  const other = useDiagnosis(workload, otherPage);
  const set = useSetPage();
  const setOther: SetPage = ({ window: zoomed, units: _, ...rest }, step) => {
    const isZoom = zoomed && compared.kind === "window";
    set(isZoom ? { ...rest, compared: { kind: "window", window: zoomed } } : rest, step);
  };
  return (
    <Frame source={other} what="the comparison">
      {(second) => (
        <div className={styles.place}>
          <Differences first={answer} second={second} />
          <ul className={styles.words} aria-label="Differences in words">
            {describeDifferences(answer, second).map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
          <div className={styles.pair}>
            <div className={styles.column}>
              <GpuPanel answer={answer} page={page} rules={rules} subject={describeSubject(answer)} />
              <TimelinePanel answer={answer} page={page} subject={describeSubject(answer)} />
              <Findings answer={answer} subject={describeSubject(answer)} />
            </div>
            <SetPageContext value={setOther}>
              <div className={styles.column}>
                <GpuPanel answer={second} page={otherPage} rules={rules} subject={describeSubject(second)} />
                <TimelinePanel answer={second} page={otherPage} subject={describeSubject(second)} canLeave={false} />
                <Findings answer={second} subject={describeSubject(second)} />
              </div>
            </SetPageContext>
          </div>
        </div>
      )}
    </Frame>
  );
}

function describeSubject({ name, workload, window }: DiagnosisAnswer): string {
  return `${name ?? workload}${window ? `, ${formatWindow(window.start, window.end)}` : ""}`;
}

interface Row {
  readonly name: string;
  readonly format: (answer: DiagnosisAnswer) => string;
}

const ROWS: readonly Row[] = [
  { name: "Workload", format: ({ name, workload }) => name ?? workload },
  { name: "Window", format: ({ window }) => (window ? formatWindow(window.start, window.end) : "–") },
  {
    name: "GPUs",
    format: ({ gpus, nodes, machine_types }) =>
      `${formatCount(gpus)} × ${machine_types.join(", ")}, ${formatPlural(nodes, "node")}`,
  },
  { name: "GPU-hours", format: ({ gpu_hours }) => formatHours(gpu_hours) },
  { name: "Wasted", format: ({ wasted_gpu_hours }) => formatHours(wasted_gpu_hours) },
  { name: "Energy", format: ({ energy_joules }) => formatEnergy(energy_joules) },
  {
    name: "Clusters",
    format: ({ clusters }) => clusters.map(({ size }) => formatCount(size)).join(" + ") || "–",
  },
  {
    name: "Findings",
    format: ({ findings }) => (findings.length > 0 ? formatPlural(findings.length, "finding") : "none"),
  },
];

function Differences({ first, second }: { first: DiagnosisAnswer; second: DiagnosisAnswer }) {
  return (
    <table className={styles.table} aria-label="Differences">
      <tbody>
        {[first, second].map((answer, at) => (
          <tr key={at === 0 ? "first" : "second"}>
            {ROWS.map(({ name, format }) => (
              <td key={name} data-same={format(first) === format(second) || undefined}>
                <small>{name}</small>
                {format(answer)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
