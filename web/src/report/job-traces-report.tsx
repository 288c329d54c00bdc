// The report of job traces: which traces, then the sections of the page.

import type { TracesDescription } from "../api/generated.ts";
import { Sections } from "../views/scheduling/history/sections.tsx";
import { HistoryStrip } from "../views/scheduling/history/strip.tsx";
import styles from "./report.module.css";

export function JobTracesReport({ description }: { description: TracesDescription }) {
  return (
    <>
      <header className={styles.title}>
        <h1>{description.traces.map(({ name }) => name).join(", ")}</h1>
        <p>
          Characteristics of these jobs, and whether the claims of Zhang & Dai about such traces hold for them. Every
          effect has two 95 % intervals: for these jobs, and with whole users resampled, because the jobs of one user
          are similar.
        </p>
      </header>
      <div className={styles.strip}>
        <HistoryStrip description={description} />
      </div>
      <div className={styles.history}>
        <Sections description={description} />
      </div>
    </>
  );
}
