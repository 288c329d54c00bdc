// The frame of every report: subject, content, and when and by which version it was written.

import { formatExact } from "../base/time.ts";
import { HangReportView } from "../views/runs/hang/hang-report.tsx";
import { DiagnosisReport } from "./diagnosis-report.tsx";
import type { ReportDocument } from "./document.ts";
import { JobTracesReport } from "./job-traces-report.tsx";
import styles from "./report.module.css";
import { TraceReport } from "./trace-report.tsx";
import { UsageReportView } from "./usage-report.tsx";

export function ReportPage({ report }: { report: ReportDocument }) {
  return (
    <div className={styles.page}>
      <main className={styles.main}>
        <Content report={report} />
      </main>
      <footer className={styles.footer}>
        Written {formatExact(report.written_at)} by ClusterScape {report.version}
      </footer>
    </div>
  );
}

function Content({ report }: { report: ReportDocument }) {
  switch (report.kind) {
    case "job-traces":
      return <JobTracesReport description={report.answers.description} />;
    case "diagnosis":
      return <DiagnosisReport answer={report.answers.diagnosis} metrics={report.answers.metrics} />;
    case "hang":
      return <HangReportView report={report.answers.report} />;
    case "trace":
      return <TraceReport {...report.answers} />;
    case "usage":
      return <UsageReportView report={report.answers.report} />;
  }
}
