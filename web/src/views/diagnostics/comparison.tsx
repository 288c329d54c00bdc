// Two workloads, or two times of one, side by side: what differs in numbers and words, then their GPUs, courses and findings.

import type { DiagnosisAnswer, RuleAnswer } from "../../api/generated.ts";
import { formatCount, formatHours, formatPlural } from "../../base/format.ts";
import { useDiagnosis } from "../../data/diagnosis.ts";
import type { Compared, DiagnosticsPage } from "../../state/diagnostics.ts";
import { Frame } from "../../widgets/frame.tsx";
import styles from "./comparison.module.css";
import { sayDifferences } from "./differences.ts";
import { Findings } from "./findings.tsx";
import { GpuPanel } from "./gpu-panel.tsx";
import { sayEnergy } from "./head.tsx";
import { type SetPage, SetPageContext, useSetPage } from "./shown.ts";
import { TimelinePanel } from "./timeline-panel.tsx";
import { sayWindow } from "./words.ts";

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
    <Frame source={other} what="what it is compared with">
      {(second) => (
        <div className={styles.place}>
          <Differences first={answer} second={second} />
          <ul className={styles.words} aria-label="Differences in words">
            {sayDifferences(answer, second).map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
          <div className={styles.pair}>
            <div className={styles.column}>
              <GpuPanel answer={answer} page={page} rules={rules} whose={sayWhose(answer)} />
              <TimelinePanel answer={answer} page={page} whose={sayWhose(answer)} />
              <Findings answer={answer} whose={sayWhose(answer)} />
            </div>
            <SetPageContext value={setOther}>
              <div className={styles.column}>
                <GpuPanel answer={second} page={otherPage} rules={rules} whose={sayWhose(second)} />
                <TimelinePanel answer={second} page={otherPage} whose={sayWhose(second)} canLeave={false} />
                <Findings answer={second} whose={sayWhose(second)} />
              </div>
            </SetPageContext>
          </div>
        </div>
      )}
    </Frame>
  );
}

function sayWhose({ name, workload, window }: DiagnosisAnswer): string {
  return `${name ?? workload}${window ? `, ${sayWindow(window.start, window.end)}` : ""}`;
}

interface Row {
  readonly name: string;
  readonly say: (answer: DiagnosisAnswer) => string;
}

const ROWS: readonly Row[] = [
  { name: "workload", say: ({ name, workload }) => name ?? workload },
  { name: "time", say: ({ window }) => (window ? sayWindow(window.start, window.end) : "–") },
  {
    name: "GPUs",
    say: ({ gpus, nodes, machine_types }) =>
      `${formatCount(gpus)} × ${machine_types.join(", ")}, ${formatPlural(nodes, "node")}`,
  },
  { name: "GPU-hours", say: ({ gpu_hours }) => formatHours(gpu_hours) },
  { name: "wasted", say: ({ wasted_gpu_hours }) => formatHours(wasted_gpu_hours) },
  { name: "energy", say: ({ energy_joules }) => sayEnergy(energy_joules) },
  {
    name: "clusters",
    say: ({ clusters }) => clusters.map(({ size }) => formatCount(size)).join(" + ") || "–",
  },
  {
    name: "findings",
    say: ({ findings }) => (findings.length > 0 ? formatPlural(findings.length, "finding") : "nothing is odd"),
  },
];

function Differences({ first, second }: { first: DiagnosisAnswer; second: DiagnosisAnswer }) {
  return (
    <table className={styles.table} aria-label="Differences">
      <tbody>
        {[first, second].map((answer, at) => (
          <tr key={at === 0 ? "first" : "second"}>
            {ROWS.map(({ name, say }) => (
              <td key={name} data-same={say(first) === say(second) || undefined}>
                <small>{name}</small>
                {say(answer)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
