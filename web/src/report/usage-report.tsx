// The report of a month or another period: figures, findings, GPU-hours over time, and a table for every way to divide
// them.

import type { UsageReport } from "../api/generated.ts";
import { UsageStrip } from "../views/usage/index.tsx";
import { GroupTable, Sheet } from "../views/usage/sheet.tsx";
import { describePeriod, PART_WORDS } from "../views/usage/words.ts";
import styles from "./report.module.css";

export function UsageReportView({ report }: { report: UsageReport }) {
  const [first, ...others] = report.parts;
  const part = first?.by[0];
  if (first === undefined || part === undefined) return null;
  const whose = [report.project, report.user].filter((name) => name !== null).join(", ");
  return (
    <>
      <header className={styles.title}>
        <h1>
          Usage of {whose === "" ? report.cluster : `${whose} on ${report.cluster}`}, {first.name}
        </h1>
        <p>
          {describePeriod(first)}, {first.timezone}
          {first.until < first.end && ", so far"}. GPU-hours are GPUs held × time, as accounting counts them, without
          suspensions.
        </p>
      </header>
      <div className={styles.strip}>
        <UsageStrip report={report} />
      </div>
      <Sheet report={report} part={part} />
      {others.flatMap((answer) => {
        const other = answer.by[0];
        if (other === undefined) return [];
        return [
          <section key={other}>
            <h2>By {PART_WORDS[other]}</h2>
            <GroupTable answer={answer} part={other} />
          </section>,
        ];
      })}
    </>
  );
}
