// One job trace in the list: whether it is drawn and in which color, what was dropped of it, and a way to forget it.

import { useState } from "react";
import type { JobTraceRow } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { toProblem, toSentence } from "../../../base/problem.ts";
import { useJobTracesClient, useRenewJobTraces } from "../../../data/job-traces.ts";
import { IconButton } from "../../../widgets/button.tsx";
import { sayUnits } from "./words.ts";

interface TraceEntryProps {
  readonly row: JobTraceRow;
  /** Null: not chosen. */
  readonly color: string | null;
  readonly isFull: boolean;
  onToggle(): void;
  onGone(): void;
}

export function TraceEntry({ row, color, isFull, onToggle, onGone }: TraceEntryProps) {
  const client = useJobTracesClient();
  const renew = useRenewJobTraces();
  const [isAsked, setAsked] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const remove = async () => {
    try {
      await client.remove(row.trace);
      onGone();
      renew();
    } catch (error) {
      setProblem(toSentence(toProblem(error).message));
    }
  };
  return (
    <li>
      <label>
        <input
          type="checkbox"
          checked={color !== null}
          disabled={color === null && isFull}
          onChange={onToggle}
          aria-label={row.name}
        />
        <i style={{ background: color ?? "var(--track)" }} />
        <span>
          <b>{row.name}</b>
          <small>{describe(row)}</small>
        </span>
      </label>
      {!row.is_own && !isAsked && (
        <IconButton icon="close" label={`Remove ${row.name}`} onClick={() => setAsked(true)} />
      )}
      {isAsked && (
        <p>
          Forget it?{" "}
          <button type="button" onClick={() => void remove()}>
            Remove
          </button>{" "}
          <button type="button" onClick={() => setAsked(false)}>
            Keep
          </button>
        </p>
      )}
      {problem && <p role="alert">{problem}</p>}
      {row.notes.length > 0 && (
        <details>
          <summary>{formatCount(row.notes.reduce((sum, { count }) => sum + count, 0))} notes on its rows</summary>
          <ul>
            {row.notes.map(({ action, reason, count, lines }) => (
              <li key={`${action} ${reason}`} title={lines?.length ? `lines ${lines.join(", ")}` : undefined}>
                {formatCount(count)} {action}: {reason}
              </li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}

function describe({ is_own, jobs, format, total_units, size_unit }: JobTraceRow): string {
  if (is_own) return "history of this cluster";
  const size = total_units === null ? `in ${size_unit}` : sayUnits(total_units, size_unit);
  return `${format}, ${formatCount(jobs)} jobs, ${size}`;
}
