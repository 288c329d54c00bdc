// Uploads files and starts their import; reports progress and errors.

import { useState } from "react";
import { type Problem, toProblem } from "../../../base/problem.ts";
import { useRenewTraces, useTracesClient } from "../../../data/traces.ts";
import { type FileToSend, nameTrace } from "./files.ts";

export type Upload =
  | { readonly state: "idle" }
  | { readonly state: "sending"; readonly name: string; readonly sent: number; readonly total: number }
  | { readonly state: "failed"; readonly name: string; readonly problem: Problem };

export function useUpload(workload: string | null, onStarted: (trace: string) => void) {
  const client = useTracesClient();
  const refetch = useRenewTraces();
  const [upload, setUpload] = useState<Upload>({ state: "idle" });

  const send = async (files: readonly FileToSend[]) => {
    if (files.length === 0) return;
    const name = nameTrace(files);
    const total = files.reduce((sum, { file }) => sum + file.size, 0);
    let done = 0;
    const reportSent = (bytes: number) => setUpload({ state: "sending", name, sent: done + bytes, total });
    reportSent(0);
    let created: string | null = null;
    try {
      const { trace_id: trace } = await client.create(name, workload);
      created = trace;
      for (const { path, file } of files) {
        await client.putFile(trace, path, file, reportSent);
        done += file.size;
      }
      await client.startImport(trace);
      setUpload({ state: "idle" });
      onStarted(trace);
    } catch (error) {
      setUpload({ state: "failed", name, problem: toProblem(error) });
      // A partial upload is useless.
      if (created !== null) await client.remove(created).catch(() => {});
    }
    refetch();
  };

  return { upload, send, dismiss: () => setUpload({ state: "idle" }) };
}
