// Status of a trace that is not imported: the progress, or why the import failed, with a retry.

import type { TraceRow } from "../../../api/generated.ts";
import { formatRatio } from "../../../base/format.ts";
import { toSentence } from "../../../base/problem.ts";
import { Button } from "../../../widgets/button.tsx";
import { Icon } from "../../../widgets/icon.tsx";
import styles from "./import-status.module.css";
import { RetryImport } from "./retry-import.tsx";

interface ImportStatusProps {
  readonly row: TraceRow;
  onChoose(): void;
}

export function ImportStatus({ row, onChoose }: ImportStatusProps) {
  if (row.state !== "failed") {
    return (
      <div className={styles.status} role="status">
        <strong>Importing {row.name}</strong>
        <progress
          max={1}
          {...(row.progress === null ? {} : { value: row.progress })}
          aria-label={`Importing ${row.name}`}
        />
        <span>
          {row.progress === null
            ? "Its files are still being uploaded."
            : `${formatRatio(row.progress)} of its files imported.`}{" "}
          The graph opens when the import is complete.
        </span>
      </div>
    );
  }
  return (
    <div className={styles.status} role="alert">
      <span className={styles.bad}>
        <Icon name="alert" size={20} />
      </span>
      <strong>{row.name} could not be imported</strong>
      <span className={styles.reason}>{toSentence(row.problem ?? "Unknown reason")}</span>
      <div className={styles.buttons}>
        <RetryImport trace={row.trace_id} />
        <Button onClick={onChoose}>Choose another trace</Button>
      </div>
    </div>
  );
}
