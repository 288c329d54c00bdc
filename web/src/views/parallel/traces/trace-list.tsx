// List of traces of the selected workload or of all: ready, importing, or failed with the reason.

import { useEffect, useRef, useState } from "react";
import type { TraceRow } from "../../../api/generated.ts";
import { formatCount, formatPlural, formatRatio } from "../../../base/format.ts";
import { toSentence } from "../../../base/problem.ts";
import { useRenewTraces, useTraces, useTracesClient } from "../../../data/traces.ts";
import { IconButton } from "../../../widgets/button.tsx";
import { Frame } from "../../../widgets/frame.tsx";
import { Segmented } from "../../../widgets/segmented.tsx";
import { RetryImport } from "./retry-import.tsx";
import styles from "./traces.module.css";

interface TraceListProps {
  readonly workload: string | null;
  readonly current: string | null;
  onOpen(trace: string | null): void;
}

export function TraceList({ workload, current, onOpen }: TraceListProps) {
  const [isOfWorkload, setOfWorkload] = useState(workload !== null);
  const filter = isOfWorkload ? workload : null;
  const list = useTraces(filter);
  return (
    <section className={styles.list} aria-label="Traces">
      <header>
        <h2>Traces</h2>
        {workload !== null && (
          <Segmented
            label="Traces of"
            name="traces-of"
            options={[
              { value: "workload", title: "This workload" },
              { value: "all", title: "All" },
            ]}
            value={isOfWorkload ? "workload" : "all"}
            onChange={(value) => setOfWorkload(value === "workload")}
          />
        )}
      </header>
      <Frame
        source={list}
        what="traces"
        isEmpty={({ traces }) => traces.length === 0}
        empty={filter === null ? "No traces yet." : "No traces of this workload yet."}
      >
        {({ traces }) => (
          <ul>
            {traces.map((trace) => (
              <Entry key={trace.trace_id} trace={trace} isCurrent={trace.trace_id === current} onOpen={onOpen} />
            ))}
          </ul>
        )}
      </Frame>
    </section>
  );
}

interface EntryProps {
  readonly trace: TraceRow;
  readonly isCurrent: boolean;
  onOpen(trace: string | null): void;
}

function Entry({ trace, isCurrent, onOpen }: EntryProps) {
  const client = useTracesClient();
  const refetch = useRenewTraces();
  const [isConfirming, setConfirming] = useState(false);
  const entry = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isCurrent) entry.current?.scrollIntoView({ block: "nearest" });
  }, [isCurrent]);
  const remove = async () => {
    await client.remove(trace.trace_id);
    if (isCurrent) onOpen(null);
    refetch();
  };
  return (
    <li ref={entry} data-state={trace.state} data-current={isCurrent || undefined}>
      <button type="button" disabled={trace.state !== "ready"} onClick={() => onOpen(trace.trace_id)}>
        <b>{trace.name}</b>
        <small>{describe(trace)}</small>
        {trace.state === "ready" && trace.headline && <span>{trace.headline}</span>}
      </button>
      {trace.state === "importing" && (
        <progress
          max={1}
          {...(trace.progress === null ? {} : { value: trace.progress })}
          aria-label={`Importing ${trace.name}`}
        />
      )}
      {trace.state === "failed" && (
        <div className={styles.failed}>
          <p role="alert">{toSentence(trace.problem ?? "The import failed")}</p>
          <RetryImport trace={trace.trace_id} />
        </div>
      )}
      {isConfirming ? (
        <p className={styles.remove}>
          Remove it from the server?{" "}
          <button type="button" onClick={() => void remove()}>
            Remove
          </button>{" "}
          <button type="button" onClick={() => setConfirming(false)}>
            Cancel
          </button>
        </p>
      ) : (
        <IconButton
          className={styles.removeButton}
          icon="close"
          label={`Remove ${trace.name}`}
          onClick={() => setConfirming(true)}
        />
      )}
    </li>
  );
}

export function describe({ state, format, ranks, steps, spans, progress, workload_id }: TraceRow): string {
  if (state === "importing") return progress === null ? "uploading" : `importing, ${formatRatio(progress)}`;
  if (state === "failed") return "import failed";
  if (spans === 0)
    return [format, formatPlural(ranks, "rank"), "operator graph only", workload_id].filter(Boolean).join(" · ");
  return [format, formatPlural(ranks, "rank"), formatPlural(steps, "step"), `${formatCount(spans)} spans`, workload_id]
    .filter(Boolean)
    .join(" · ");
}
