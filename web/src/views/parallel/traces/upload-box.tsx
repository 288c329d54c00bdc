// Where traces are dropped: files or whole folders, by mouse or chosen by keys.

import { useRef } from "react";
import { formatBytes, formatRatio } from "../../../base/format.ts";
import { toSentence } from "../../../base/problem.ts";
import { IconButton } from "../../../widgets/button.tsx";
import { DropBox } from "../../../widgets/drop-box.tsx";
import { Icon } from "../../../widgets/icon.tsx";
import { listChosen, listDropped } from "./files.ts";
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
  const take = (input: HTMLInputElement) => {
    const chosen = input.files ? listChosen(input.files) : [];
    void send(chosen);
    input.value = "";
  };
  return (
    <DropBox label="Bring a trace" onDrop={({ items }) => void listDropped(items).then(send)}>
      {upload.state === "sending" ? (
        <div className={styles.sending} role="status">
          <span>
            Sending {upload.name} <b>{formatRatio(upload.sent / Math.max(1, upload.total))}</b> of{" "}
            {formatBytes(upload.total)}
          </span>
          <progress max={Math.max(1, upload.total)} value={upload.sent} aria-label={`Sending ${upload.name}`} />
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
          <b>{upload.name} was not taken.</b> {toSentence(upload.problem.message)}{" "}
          {upload.problem.hint && toSentence(upload.problem.hint)}
          <IconButton icon="close" label="Put away" onClick={dismiss} />
        </p>
      )}
      <input
        ref={files}
        type="file"
        multiple
        hidden
        aria-label="Trace files"
        onChange={(event) => take(event.currentTarget)}
      />
      <input
        ref={(element) => {
          folder.current = element;
          element?.setAttribute("webkitdirectory", "");
        }}
        type="file"
        hidden
        aria-label="Trace folder"
        onChange={(event) => take(event.currentTarget)}
      />
    </DropBox>
  );
}
