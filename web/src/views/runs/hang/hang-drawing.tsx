// Who hangs in the job of the open run, as the server answers.

import { useHang } from "../../../data/runs.ts";
import { Frame } from "../../../widgets/frame.tsx";
import styles from "../runs.module.css";
import { HangReportView } from "./hang-report.tsx";

export function HangDrawing({ run }: { run: string | null }) {
  const answer = useHang(run);
  if (run === null) return <p className={styles.empty}>Open a run to see who hangs in it.</p>;
  return (
    <Frame
      source={answer}
      what="who hangs"
      isEmpty={({ report }) => report === null}
      empty={
        <>
          <strong>This run was not seen hanging</strong>
          <span>Trackers look at the ranks of runs that log steps and then stop. For other processes and dumps:</span>
          <code>clusterscape hang DUMPS_OR_JOB</code>
        </>
      }
    >
      {({ report, hosts, hosts_without_look, went_on_at }) =>
        report && (
          <HangReportView report={report} hosts={hosts} hostsWithoutLook={hosts_without_look} wentOnAt={went_on_at} />
        )
      }
    </Frame>
  );
}
