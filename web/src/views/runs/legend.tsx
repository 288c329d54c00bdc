// Legend of groups; a click opens the first run of the group.

import type { ReactNode } from "react";
import { openRun } from "../../state/runs.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Legend } from "../../widgets/legend.tsx";
import styles from "./charts.module.css";
import type { RunGroup } from "./groups.ts";

/** Marks runs that did not complete: what they did until then is not comparable with whole runs. */
export function UnfinishedMark({ what }: { what: string }) {
  return (
    <small className={styles.unfinished} data-drawn-label={true}>
      {what}
    </small>
  );
}

export function RunLegend({ groups, children }: { groups: readonly RunGroup[]; children?: ReactNode }) {
  const change = useChangeScreen();
  return (
    <Legend className={styles.legend} aria-label="Legend">
      {groups.map(({ key, label, color, rows, unfinished }) => (
        <li key={key}>
          <i data-swatch={true} style={{ background: color }} />
          <button type="button" onClick={() => rows[0] && change(openRun(rows[0]))}>
            {label}
          </button>
          {rows.length > 1 && <small>×{rows.length}</small>}
          {unfinished !== null && <UnfinishedMark what={unfinished} />}
        </li>
      ))}
      {children}
    </Legend>
  );
}
