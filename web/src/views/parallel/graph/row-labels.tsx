// Labels of a graph's rows: a click expands a stage to its ranks, or a rank to its lanes.

import type { MareyRow } from "../../../api/marey.ts";
import { Icon } from "../../../widgets/icon.tsx";
import styles from "./marey-graph.module.css";
import { AXIS_PX } from "./painter.ts";
import { findRankLabel, keyOfRow, type PlacedRows } from "./rows.ts";

interface RowLabelsProps {
  readonly rows: readonly MareyRow[];
  readonly placed: PlacedRows;
  readonly scrollY: number;
  readonly height: number;
  /** A second line of the label. */
  detailOf(row: MareyRow): string | null;
  onToggle(key: string): void;
}

export function RowLabels({ rows, placed, scrollY, height, detailOf, onToggle }: RowLabelsProps) {
  return (
    <div className={styles.labels}>
      {rows.map((row, at) => {
        const pitch = placed.pitch[at] ?? 0;
        const middle = (placed.top[at] ?? 0) + (placed.height[at] ?? 0) / 2 + AXIS_PX - scrollY;
        if (middle < AXIS_PX - pitch || middle > height + pitch) return null;
        return (
          <RowLabel
            key={`${row.stage} ${row.rank} ${row.lane} ${row.depth}`}
            row={row}
            rank={findRankLabel(rows, at)}
            isAlone={rows[0]?.depth === 2}
            middle={middle}
            isTight={pitch < 34}
            detail={detailOf(row)}
            onToggle={onToggle}
          />
        );
      })}
    </div>
  );
}

interface RowLabelProps {
  readonly row: MareyRow;
  /** Shown before the label. */
  readonly rank: string | null;
  /** There are no rows of ranks above the lanes. */
  readonly isAlone: boolean;
  readonly middle: number;
  readonly isTight: boolean;
  readonly detail: string | null;
  onToggle(key: string): void;
}

function RowLabel({ row, rank, isAlone, middle, isTight, detail, onToggle }: RowLabelProps) {
  const key = keyOfRow(row);
  const style = { top: middle, paddingLeft: 8 + (isAlone ? 0 : row.depth * 12) };
  const content = (
    <>
      <b>
        {rank && <em>{rank}</em>}
        {row.label}
      </b>
      {!isTight && detail && <small>{detail}</small>}
    </>
  );
  if (!row.canOpen || key === null) {
    return (
      <div
        className={styles.label}
        style={style}
        data-depth={row.depth}
        data-tip={isTight ? (detail ?? undefined) : undefined}
      >
        <span>{content}</span>
      </div>
    );
  }
  return (
    <button
      type="button"
      className={styles.label}
      style={style}
      data-depth={row.depth}
      aria-expanded={row.isOpen}
      data-tip={row.isOpen ? "Collapse" : row.depth === 0 ? "Expand ranks" : "Expand streams and threads"}
      onClick={() => onToggle(key)}
    >
      <i aria-hidden="true">
        <Icon name={row.isOpen ? "down" : "plus"} size={10} />
      </i>
      <span>{content}</span>
    </button>
  );
}
