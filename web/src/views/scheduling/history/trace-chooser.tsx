// Which traces are described: this cluster's history and what was uploaded; where further ones are dropped.

import type { JobTraceRow } from "../../../api/generated.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { useJobTraces } from "../../../data/job-traces.ts";
import { changeScheduling, MOST_TRACES } from "../../../state/scheduling.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { Frame } from "../../../widgets/frame.tsx";
import styles from "./trace-chooser.module.css";
import { TraceEntry } from "./trace-entry.tsx";
import { TraceUpload } from "./trace-upload.tsx";

export function TraceChooser({ chosen }: { chosen: readonly string[] }) {
  const list = useJobTraces();
  const change = useChangeScreen();
  const choose = (history: readonly string[]) => change(changeScheduling({ history }));
  const toggle = ({ trace }: JobTraceRow) =>
    choose(chosen.includes(trace) ? chosen.filter((each) => each !== trace) : [...chosen, trace]);
  return (
    <div>
      <section aria-label="Job traces">
        <h2>Traces</h2>
        <Frame source={list} what="job traces">
          {({ traces }) => (
            <ul className={styles.list}>
              {traces.map((row) => (
                <TraceEntry
                  key={row.trace}
                  row={row}
                  color={chosen.includes(row.trace) ? colorAt(chosen.indexOf(row.trace)) : null}
                  isFull={chosen.length >= MOST_TRACES}
                  onToggle={() => toggle(row)}
                  onGone={() => choose(chosen.filter((each) => each !== row.trace))}
                />
              ))}
            </ul>
          )}
        </Frame>
        <p className={styles.hint}>Up to four are drawn side by side.</p>
      </section>
      <TraceUpload
        onUploaded={({ trace }) =>
          choose([...chosen.slice(0, MOST_TRACES - 1).filter((each) => each !== trace), trace])
        }
      />
    </div>
  );
}
