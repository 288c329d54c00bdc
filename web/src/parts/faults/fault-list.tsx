// Current and past faults of a node and its GPUs, independent of the workload: which rule, which GPU, from when to
// when.

import type { FaultAnswer, NodeTurnAnswer } from "../../api/generated.ts";
import { formatDuration, formatExact } from "../../base/time.ts";
import { RelativeTime } from "../../widgets/relative-time.tsx";
import { Tag } from "../../widgets/tag.tsx";
import { OpenLink } from "../panel/panel.tsx";
import styles from "./fault-list.module.css";

const TONES = { critical: "bad", warning: "warn", info: "neutral" } as const;
const MOST_SHOWN = 12;

interface FaultListProps {
  readonly faults: readonly FaultAnswer[];
  /** Whether to name the GPU of each. */
  readonly namesUnits: boolean;
}

export function FaultList({ faults, namesUnits }: FaultListProps) {
  const hidden = faults.length - MOST_SHOWN;
  return (
    <ul className={styles.faults}>
      {faults.slice(0, MOST_SHOWN).map((fault) => (
        <li
          key={`${fault.rule} ${fault.unit} ${fault.since}`}
          data-open={fault.until === null ? fault.severity : undefined}
        >
          <div className={styles.line}>
            <b>{fault.rule_name}</b>
            {namesUnits && fault.unit !== null && <OpenLink kind="unit" name={fault.unit} />}
            {fault.until === null && <Tag tone={TONES[fault.severity]}>now</Tag>}
          </div>
          <small>
            <Times since={fault.since} until={fault.until} />
            {fault.readings && ` · ${fault.readings}`}
          </small>
        </li>
      ))}
      {hidden > 0 && <li>and {hidden} more</li>}
    </ul>
  );
}

function Times({ since, until }: { since: number; until: number | null }) {
  if (until === null) {
    return (
      <>
        since <RelativeTime at={since} />
      </>
    );
  }
  return (
    <span data-tip={`${formatExact(since)} – ${formatExact(until)}`}>
      <RelativeTime at={since} />, for {formatDuration((until - since) / 1000)}
    </span>
  );
}

/** When the node went out of service and came back. */
export function TurnList({ turns }: { turns: readonly NodeTurnAnswer[] }) {
  return (
    <ul className={styles.turns}>
      {turns.slice(0, MOST_SHOWN).map((turn) => (
        <li key={turn.from_at}>
          <b>{turn.state}</b>
          <RelativeTime at={turn.from_at} />
          {turn.reason && <small>{turn.reason}</small>}
        </li>
      ))}
    </ul>
  );
}
