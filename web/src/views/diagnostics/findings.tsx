// What was found, in words, most important first. A finding shows its GPUs, its time and its metrics when it is clicked.

import type { DiagnosisAnswer, FindingAnswer } from "../../api/generated.ts";
import { formatGpuHours, formatPlural, formatRatio, isKnown } from "../../base/format.ts";
import { formatDuration } from "../../base/time.ts";
import { type DiagnosticsPage, toWindow } from "../../state/diagnostics.ts";
import styles from "./findings.module.css";
import { PanelBox } from "./panel-box.tsx";
import { useSetPage } from "./shown.ts";
import { sayEstimate, sayP, sayWindow } from "./words.ts";

/** A finding of nearly the whole time does not change the window. */
const NEARLY_ALL = 0.85;
const MOST_ODD = 5;

interface FindingsProps {
  readonly answer: DiagnosisAnswer;
  /** Said in the heading where two are compared. */
  readonly whose?: string;
}

export function Findings({ answer, whose }: FindingsProps) {
  const set = useSetPage();
  const { findings, odd, odd_note, notes } = answer;
  const others = odd.filter(
    ({ unit }) => !findings.some(({ kind, units }) => kind === "odd_gpu" && units.includes(unit)),
  );
  return (
    <PanelBox title={whose ? `Findings, ${whose}` : "Findings"} className={styles.panel}>
      <ul className={styles.list}>
        {findings.map((finding) => (
          <li key={`${finding.kind} ${finding.title}`} data-severity={finding.severity}>
            <button
              type="button"
              data-tip="Show its GPUs, time and metrics"
              onClick={() => set(showFinding(finding, answer))}
            >
              <b>{finding.title}</b>
              <span>{finding.reason}</span>
              <small>{describeEvidence(finding)}</small>
            </button>
          </li>
        ))}
        {others.slice(0, MOST_ODD).map(({ unit, sentence, p_value, distance }) => (
          <li key={unit} data-severity="info">
            <button type="button" onClick={() => set({ units: [unit] })}>
              <b>{sentence}</b>
              <small>
                {unit} · distance {distance.toPrecision(2)} · {sayP(p_value)}
              </small>
            </button>
          </li>
        ))}
        {findings.length + others.length === 0 && answer.units.length > 1 && (
          <li data-severity="none">
            <p>
              <b>{odd_note === null ? "Nothing is odd." : "Nothing was found."}</b>
              <span>{odd_note ?? "The GPUs behave alike, and nothing else stands out in this window."}</span>
            </p>
          </li>
        )}
        {notes
          .filter((note) => note !== odd_note)
          .map((note) => (
            <li key={note} data-severity="none">
              <p>
                <span>{note}</span>
              </p>
            </li>
          ))}
      </ul>
    </PanelBox>
  );
}

export function describeEvidence(finding: FindingAnswer): string {
  const numbers = Object.entries(finding.numbers).map(
    ([name, number]) => `${name.replaceAll("_", " ")} ${sayEstimate(number)}`,
  );
  return [
    saySize(finding),
    ...numbers,
    formatPlural(finding.units.length, "GPU"),
    sayWindow(finding.start_at, finding.end_at),
  ]
    .filter(Boolean)
    .join(" · ");
}

function saySize({ size, size_unit }: FindingAnswer): string | null {
  if (!isKnown(size)) return null;
  if (size_unit === "gpu_hours") return formatGpuHours(size);
  return size_unit === "seconds" ? formatDuration(size) : `${formatRatio(size)} of the time`;
}

export function showFinding(finding: FindingAnswer, answer: DiagnosisAnswer): Partial<DiagnosticsPage> {
  const { life } = answer;
  const isAll = life !== null && finding.end_at - finding.start_at >= NEARLY_ALL * (life.end - life.start);
  const metric = finding.metrics.find((name) => answer.metrics.some((known) => known.name === name));
  return {
    units: finding.units.length === answer.units.length ? [] : finding.units,
    window: isAll || finding.end_at <= finding.start_at ? null : toWindow(finding.start_at, finding.end_at),
    ...(metric ? { metric } : {}),
    brush: null,
  };
}
