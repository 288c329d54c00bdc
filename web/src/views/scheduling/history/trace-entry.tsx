// One job trace in the list: whether it is drawn and in which color, what was dropped of it, and a way to forget it.

import type { JobTraceRow } from "../../../api/generated.ts";
import { formatCount } from "../../../base/format.ts";
import { useJobTracesClient, useRenewJobTraces } from "../../../data/job-traces.ts";
import { RemoveButton } from "../../../widgets/remove-button.tsx";
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
  const remove = async () => {
    await client.remove(row.trace);
    onGone();
    renew();
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
