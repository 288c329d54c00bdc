// Findings, most important first. A click on a finding shows its GPUs, time and metrics.

import type { DiagnosisAnswer, FindingAnswer } from "../../api/generated.ts";
import { formatGpuHours, formatPlural, formatRatio, isKnown } from "../../base/format.ts";
import { formatDuration } from "../../base/time.ts";
import { type DiagnosticsPage, toWindow } from "../../state/diagnostics.ts";
import styles from "./findings.module.css";
import { PanelBox } from "./panel-box.tsx";
import { useIsRecorded, useSetPage } from "./shown.ts";
import { formatEstimate, formatPValue, formatWindow } from "./words.ts";

/** A finding that covers at least this share of the life does not change the window. */
const WHOLE_LIFE_SHARE = 0.85;
const MAX_ODD = 5;

interface FindingsProps {
  readonly answer: DiagnosisAnswer;
  /** Shown in the heading of a comparison. */
  readonly subject?: string;
  /** How many odd GPUs without a finding are listed. */
  readonly mostOdd?: number;
}

export function Findings({ answer, subject, mostOdd = MAX_ODD }: FindingsProps) {
  const set = useSetPage();
  const isRecorded = useIsRecorded();
  const { findings, odd, odd_note, notes } = answer;
  const others = odd.filter(
    ({ unit }) => !findings.some(({ kind, units }) => kind === "odd_gpu" && units.includes(unit)),
  );
  return (
    <PanelBox title={subject ? `Findings, ${subject}` : "Findings"} className={styles.panel}>
      <ul className={styles.list}>
        {findings.map((finding) => (
          <li key={`${finding.kind} ${finding.title}`} data-severity={finding.severity}>
            <button
              type="button"
              data-tip={isRecorded ? "Show its GPUs" : "Show its GPUs, time and metrics"}
              onClick={() => set(showFinding(finding, answer))}
            >
              <b>{finding.title}</b>
              <span>{finding.reason}</span>
              <small>{describeEvidence(finding)}</small>
            </button>
          </li>
        ))}
        {others.slice(0, mostOdd).map(({ unit, sentence, p_value, distance }) => (
          <li key={unit} data-severity="info">
            <button type="button" onClick={() => set({ units: [unit] })}>
              <b>{sentence}</b>
              <small>
                {unit} · distance {distance.toPrecision(2)} · {formatPValue(p_value)}
              </small>
            </button>
          </li>
        ))}
        {others.length > mostOdd && (
          <li data-severity="none">
            <p>
              <span>and {formatPlural(others.length - mostOdd, "more odd GPU")}</span>
            </p>
          </li>
        )}
        {findings.length + others.length === 0 && answer.units.length > 1 && (
          <li data-severity="none">
            <p>
              <b>{odd_note === null ? "Nothing unusual." : "No findings."}</b>
              <span>{odd_note ?? "All GPUs behave alike, and there are no other findings in this window."}</span>
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
    // The unit, which a name ends with, stands after the number.
    ([name, number]) => `${name.replace(/_s$/, "").replaceAll("_", " ")} ${formatEstimate(number)}`,
  );
  return [
    formatSize(finding),
    ...numbers,
    formatPlural(finding.units.length, "GPU"),
    formatWindow(finding.start_at, finding.end_at),
  ]
    .filter(Boolean)
    .join(" · ");
}

function formatSize({ size, size_unit }: FindingAnswer): string | null {
  if (!isKnown(size)) return null;
  if (size_unit === "gpu_hours") return formatGpuHours(size);
  return size_unit === "seconds" ? formatDuration(size) : `${formatRatio(size)} of the time`;
}

export function showFinding(finding: FindingAnswer, answer: DiagnosisAnswer): Partial<DiagnosticsPage> {
  const { life } = answer;
  const isAll = life !== null && finding.end_at - finding.start_at >= WHOLE_LIFE_SHARE * (life.end - life.start);
  const metric = finding.metrics.find((name) => answer.metrics.some((other) => other.name === name));
  return {
    units: finding.units.length === answer.units.length ? [] : finding.units,
    window: isAll || finding.end_at <= finding.start_at ? null : toWindow(finding.start_at, finding.end_at),
    ...(metric ? { metric } : {}),
    brush: null,
  };
}
