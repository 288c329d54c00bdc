// Where a job trace is dropped or chosen. What cannot be read says why.

import { useRef, useState } from "react";
import type { JobTraceRow } from "../../../api/generated.ts";
import { type Problem, toProblem, toSentence } from "../../../base/problem.ts";
import { useJobTracesClient, useRenewJobTraces } from "../../../data/job-traces.ts";
import { IconButton } from "../../../widgets/button.tsx";
import { DropBox } from "../../../widgets/drop-box.tsx";
import { Icon } from "../../../widgets/icon.tsx";

export function TraceUpload({ onUploaded }: { onUploaded(row: JobTraceRow): void }) {
  const client = useJobTracesClient();
  const renew = useRenewJobTraces();
  const input = useRef<HTMLInputElement>(null);
  const [sending, setSending] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const send = async (file: File | undefined) => {
    if (!file || sending !== null) return;
    setSending(file.name);
    setProblem(null);
    try {
      const row = await client.upload(file.name, file, null);
      renew();
      onUploaded(row);
    } catch (error) {
      setProblem(toProblem(error));
    }
    setSending(null);
  };
  return (
    <DropBox label="Bring a job trace" onDrop={({ files }) => void send(files[0])}>
      {sending === null ? (
        <p>
          <Icon name="upload" size={14} />
          Drop a job trace here, or{" "}
          <button type="button" onClick={() => input.current?.click()}>
            choose a file
          </button>
        </p>
      ) : (
        <p role="status">Reading {sending} …</p>
      )}
      <p>SWF, sacct, Lumos, Philly, Helios, Acme, openb; also compressed.</p>
      {problem && (
        <p role="alert">
          {problem.message}. {problem.hint && toSentence(problem.hint)}
          <IconButton icon="close" label="Put away" onClick={() => setProblem(null)} />
        </p>
      )}
      <input
        ref={input}
        type="file"
        hidden
        aria-label="Job trace file"
        onChange={(event) => {
          void send(event.currentTarget.files?.[0]);
          event.currentTarget.value = "";
        }}
      />
    </DropBox>
  );
}
