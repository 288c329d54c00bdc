// Upload box for a job trace: drop or choose a file. Shows why a file cannot be read.

import { useRef, useState } from "react";
import type { JobTraceRow } from "../../../api/generated.ts";
import { type Problem, toProblem, toSentence } from "../../../base/problem.ts";
import { useJobTracesClient, useRenewJobTraces } from "../../../data/job-traces.ts";
import { IconButton } from "../../../widgets/button.tsx";
import { DropBox } from "../../../widgets/drop-box.tsx";
import { Icon } from "../../../widgets/icon.tsx";

export function TraceUpload({ onUploaded }: { onUploaded(row: JobTraceRow): void }) {
  const client = useJobTracesClient();
  const refetch = useRenewJobTraces();
  const input = useRef<HTMLInputElement>(null);
  const [fileName, setFileName] = useState<string | null>(null);
  const [machineSize, setMachineSize] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const send = async (file: File | undefined) => {
    if (!file || fileName !== null) return;
    setFileName(file.name);
    setProblem(null);
    try {
      const row = await client.upload(file.name, file, readSize(machineSize));
      refetch();
      onUploaded(row);
    } catch (error) {
      setProblem(toProblem(error));
    }
    setFileName(null);
  };
  return (
    <DropBox label="Upload a job trace" onDrop={({ files }) => void send(files[0])}>
      {fileName === null ? (
        <p>
          <Icon name="upload" size={14} />
          Drop a job trace here, or{" "}
          <button type="button" onClick={() => input.current?.click()}>
            choose a file
          </button>
        </p>
      ) : (
        <p role="status">Reading {fileName}…</p>
      )}
      <label>
        Machine size{" "}
        <input
          type="number"
          min={1}
          step={1}
          size={8}
          placeholder="guessed"
          value={machineSize}
          onChange={(event) => setMachineSize(event.currentTarget.value)}
          data-tip="In nodes, GPUs or processors, as the sizes of the jobs; only used where the file does not state it"
        />
      </label>
      <p>
        SWF, sacct, Torque, CSV with usual column names, Lumos, Philly, Helios, Acme, Alibaba, Google Borg; also
        compressed.
      </p>
      {problem && (
        <p role="alert">
          {problem.message}. {problem.hint && toSentence(problem.hint)}
          <IconButton icon="close" label="Dismiss" onClick={() => setProblem(null)} />
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

/** A whole number above zero; null: the size is guessed. */
export function readSize(text: string): number | null {
  const size = Number(text);
  return Number.isInteger(size) && size > 0 ? size : null;
}
