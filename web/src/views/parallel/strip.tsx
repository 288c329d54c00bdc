// Summary of the trace, with buttons to panes and to the diagnostics of the same workload.

import type { TraceAnswer, TraceReportAnswer } from "../../api/generated.ts";
import { formatPlural, formatRatio } from "../../base/format.ts";
import { diagnose } from "../../state/diagnostics.ts";
import { changeParallel, openTrace, type Pane } from "../../state/parallel.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button, IconButton } from "../../widgets/button.tsx";
import { FigureList, FigureTerm, Strip } from "../../widgets/strip.tsx";
import { formatSeconds } from "./graph/axis.ts";
import { PANE_OPTIONS } from "./panes.tsx";
import styles from "./parallel.module.css";
import { meanStep } from "./verdict-cards.tsx";

interface StripProps {
  readonly answer: TraceAnswer | undefined;
  readonly pane: Pane;
}

export function ParallelStrip({ answer, pane }: StripProps) {
  const change = useChangeScreen();
  if (answer === undefined) return null;
  const { row, report } = answer;
  return (
    <Strip className={styles.strip}>
      <div className={styles.names}>
        <h1>
          {row.name}
          <IconButton icon="close" label="Choose another trace" onClick={() => change(openTrace(null))} />
        </h1>
        <p>{describe(answer)}</p>
      </div>
      {report && row.spans > 0 && <TraceFigures report={report} />}
      <div className={styles.links}>
        {pane === "none" &&
          report &&
          row.spans > 0 &&
          PANE_OPTIONS.filter(({ value }) => value !== "span").map(({ value, title }) => (
            <Button key={value} onClick={() => change(changeParallel({ pane: value }), "replace")}>
              {title}
            </Button>
          ))}
        {row.workload_id !== null && <Button onClick={() => change(diagnose(row.workload_id))}>Diagnostics</Button>}
      </div>
    </Strip>
  );
}

export function TraceFigures({ report }: { report: TraceReportAnswer }) {
  return (
    <FigureList>
      <FigureTerm name="mean step" value={formatSeconds(meanStep(report))} />
      <FigureTerm name="compute" value={shareOf(report.breakdown, "compute_s")} />
      <FigureTerm name="exposed waiting" value={shareOf(report.breakdown, "waiting_s")} />
      <FigureTerm name="exposed transfer" value={shareOf(report.breakdown, "transferring_s")} />
      <FigureTerm name="idle" value={shareOf(report.breakdown, "idle_s")} />
      {report.bubble && <FigureTerm name="bubble" value={formatRatio(report.bubble.measured_ratio)} />}
    </FigureList>
  );
}

export function describe({ row, stages, report }: TraceAnswer): string {
  if (row.state === "importing") return row.progress === null ? "uploading" : "importing";
  if (row.state === "failed") return "import failed";
  const stageCount = stages.filter(({ stage }) => stage !== null).length;
  const parts = [
    row.format,
    formatPlural(row.ranks, "rank"),
    stageCount > 1 ? formatPlural(stageCount, "stage") : null,
  ];
  if (row.state === "ready" && row.spans === 0) {
    return [...parts, "operator graph only: no times recorded"].filter(Boolean).join(" · ");
  }
  return [
    ...parts,
    report?.bubble ? formatPlural(report.bubble.micro_batches, "micro-batch", "micro-batches") : null,
    formatPlural(row.steps, "step"),
    formatPlural(row.spans, "span"),
  ]
    .filter(Boolean)
    .join(" · ");
}

type Breakdown = NonNullable<TraceAnswer["report"]>["breakdown"];

export function shareOf(rows: Breakdown, part: "compute_s" | "waiting_s" | "transferring_s" | "idle_s"): string {
  const total = rows.reduce((sum, { step_s }) => sum + step_s, 0);
  return total > 0 ? formatRatio(rows.reduce((sum, row) => sum + row[part], 0) / total) : "–";
}
