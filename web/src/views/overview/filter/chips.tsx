// The active conditions as chips above the rows; each can be removed.

import { clearFilters, setClause, showWithin } from "../../../state/changes.ts";
import type { Screen } from "../../../state/screen.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { serializeWhere } from "../../../state/where.ts";
import { Chip } from "../../../widgets/chip.tsx";
import { describeSelection } from "../details/selection-words.ts";
import styles from "./chips.module.css";
import { describeClause, describeCondition, explainUnapplied, lowerTitle, titleOf } from "./condition-words.ts";

interface ChipsProps {
  readonly screen: Screen;
  /** Of each clause, whether the rows on the screen have its attributes. */
  readonly isApplied: readonly boolean[];
}

export function Chips({ screen, isApplied }: ChipsProps) {
  const change = useChangeScreen();
  const { where, table } = screen;
  const { within } = screen;
  if (where.length === 0 && within === null) return null;
  const keys = serializeWhere(where);
  return (
    <ul className={styles.chips} aria-label="Active filters">
      {where.map((clause, at) => {
        const unapplied = explainUnapplied(clause, isApplied[at], table);
        return (
          <li key={keys[at]}>
            <Chip
              aria-label={`Remove filter ${describeClause(clause)}`}
              data-unapplied={unapplied !== null || undefined}
              data-tip={unapplied ?? undefined}
              onClick={() => change(setClause(at, null))}
            >
              {clause.map((condition, index) => (
                <span key={`${condition.attribute}${describeCondition(condition)}`}>
                  {index > 0 && <small>or </small>}
                  <small>{lowerTitle(titleOf(condition))}</small> {describeCondition(condition)}
                </span>
              ))}
            </Chip>
          </li>
        );
      })}
      {within && (
        <li>
          <Chip
            aria-label={`only ${describeSelection(within)}: Show all units again`}
            data-unapplied={table === "workloads" || table === "nodes" || undefined}
            onClick={() => change(showWithin(null))}
          >
            <span>
              <small>only</small> {describeSelection(within)}
            </span>
          </Chip>
        </li>
      )}
      <li>
        <button type="button" className={styles.clear} onClick={() => change(clearFilters)}>
          Clear
        </button>
      </li>
    </ul>
  );
}
