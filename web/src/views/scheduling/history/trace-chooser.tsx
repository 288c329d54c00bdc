// Selects traces: this cluster's history and uploaded files; with an upload box.

import type { JobTraceRow } from "../../../api/generated.ts";
import { colorAt } from "../../../charts/series-colors.ts";
import { useJobTraces } from "../../../data/job-traces.ts";
import { changeScheduling, MOST_TRACES } from "../../../state/scheduling.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { Frame } from "../../../widgets/frame.tsx";
import styles from "./trace-chooser.module.css";
import { TraceEntry } from "./trace-entry.tsx";
import { TraceUpload } from "./trace-upload.tsx";

export function TraceChooser({ selected }: { selected: readonly string[] }) {
  const list = useJobTraces();
  const change = useChangeScreen();
  const setSelected = (history: readonly string[]) => change(changeScheduling({ history }));
  const toggle = ({ trace }: JobTraceRow) =>
    setSelected(selected.includes(trace) ? selected.filter((key) => key !== trace) : [...selected, trace]);
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
                  color={selected.includes(row.trace) ? colorAt(selected.indexOf(row.trace)) : null}
                  isFull={selected.length >= MOST_TRACES}
                  onToggle={() => toggle(row)}
                  onRemoved={() => setSelected(selected.filter((key) => key !== row.trace))}
                />
              ))}
            </ul>
          )}
        </Frame>
        <p className={styles.hint}>Select up to four traces to compare.</p>
      </section>
      <TraceUpload
        onUploaded={({ trace }) =>
          setSelected([...selected.slice(0, MOST_TRACES - 1).filter((key) => key !== trace), trace])
        }
      />
    </div>
  );
}
