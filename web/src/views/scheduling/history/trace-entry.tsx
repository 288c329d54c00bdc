// One job trace in the list: its checkbox and color, notes on its rows, and a remove button.

import type { JobTraceRow } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { useJobTracesClient, useRenewJobTraces } from "../../../data/job-traces.ts";
import { RemoveButton } from "../../../widgets/remove-button.tsx";
import { formatUnits } from "./words.ts";

interface TraceEntryProps {
  readonly row: JobTraceRow;
  /** Null: not selected. */
  readonly color: string | null;
  readonly isFull: boolean;
  onToggle(): void;
  onRemoved(): void;
}

export function TraceEntry({ row, color, isFull, onToggle, onRemoved }: TraceEntryProps) {
  const client = useJobTracesClient();
  const refetch = useRenewJobTraces();
  const remove = async () => {
    await client.remove(row.trace);
    onRemoved();
    refetch();
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
        <i data-swatch={true} style={{ background: color ?? "var(--track)" }} />
        <span>
          <b>{row.name}</b>
          <small>{describe(row)}</small>
        </span>
      </label>
      {!row.is_own && <RemoveButton label={`Remove ${row.name}`} onRemove={remove} />}
      {row.notes.length > 0 && (
        <details>
          <summary>{formatCount(row.notes.reduce((sum, { count }) => sum + count, 0))} notes on rows</summary>
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
  const size = total_units === null ? `in ${size_unit}` : formatUnits(total_units, size_unit);
  return `${format}, ${formatCount(jobs)} jobs, ${size}`;
}
