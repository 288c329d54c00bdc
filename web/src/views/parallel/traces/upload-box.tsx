// Upload box for traces: drop or choose files or a folder.

import { useRef } from "react";
import { formatBytes, formatRatio } from "../../../base/format.ts";
import { toSentence } from "../../../base/problem.ts";
import { IconButton } from "../../../widgets/button.tsx";
import { DropBox } from "../../../widgets/drop-box.tsx";
import { Icon } from "../../../widgets/icon.tsx";
import { listChosenFiles, listDroppedFiles } from "./files.ts";
import styles from "./traces.module.css";
import { useUpload } from "./use-upload.ts";

interface UploadBoxProps {
  readonly workload: string | null;
  onStarted(trace: string): void;
}

export function UploadBox({ workload, onStarted }: UploadBoxProps) {
  const { upload, send, dismiss } = useUpload(workload, onStarted);
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const sendChosen = (input: HTMLInputElement) => {
    const chosen = input.files ? listChosenFiles(input.files) : [];
    void send(chosen);
    input.value = "";
  };
  return (
    <DropBox label="Upload a trace" onDrop={({ items }) => void listDroppedFiles(items).then(send)}>
      {upload.state === "sending" ? (
        <div className={styles.sending} role="status">
          <span>
            Uploading {upload.name} <b>{formatRatio(upload.sent / Math.max(1, upload.total))}</b> of{" "}
            {formatBytes(upload.total)}
          </span>
          <progress max={Math.max(1, upload.total)} value={upload.sent} aria-label={`Uploading ${upload.name}`} />
        </div>
      ) : (
        <p>
          <Icon name="upload" size={14} />
          Drop traces here, or choose{" "}
          <button type="button" onClick={() => files.current?.click()}>
            files
          </button>{" "}
          or a{" "}
          <button type="button" onClick={() => folder.current?.click()}>
            folder
          </button>
        </p>
      )}
      {upload.state === "failed" && (
        <p role="alert">
          <b>{upload.name} was not uploaded.</b> {toSentence(upload.problem.message)}{" "}
          {upload.problem.hint && toSentence(upload.problem.hint)}
          <IconButton icon="close" label="Dismiss" onClick={dismiss} />
        </p>
      )}
      <input
        ref={files}
        type="file"
        multiple
        hidden
        aria-label="Trace files"
        onChange={(event) => sendChosen(event.currentTarget)}
      />
      <input
        ref={(element) => {
          folder.current = element;
          element?.setAttribute("webkitdirectory", "");
        }}
        type="file"
        hidden
        aria-label="Trace folder"
        onChange={(event) => sendChosen(event.currentTarget)}
      />
    </DropBox>
  );
}
