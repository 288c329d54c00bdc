// Units as squares, in a row or node by node, each with a tooltip; those that do not fit are counted.

import type { ReactNode } from "react";
import { nameAt, numberAt } from "../../api/columns.ts";
import { formatRatio } from "../../base/format.ts";
import { findMetric, type Units } from "../../data/units.ts";
import { UnitMark } from "../../widgets/unit-mark.tsx";
import styles from "./unit-marks.module.css";
import { toUnitState } from "./words.ts";

interface UnitMarksProps {
  readonly units: Units;
  /** Rows of the snapshot. */
  readonly rows: readonly number[];
  readonly most: number;
  /** A block per node, eight units wide, as nodes have. */
  readonly isByNode?: boolean;
  onChoose?: (unit: string) => void;
}

export function UnitMarks({ units, rows, most, isByNode = false, onChoose }: UnitMarksProps) {
  const util = findMetric(units, "gpu_util_ratio");
  const unit = units.snapshot.names("unit");
  const state = units.snapshot.names("unit_state");
  const holder = units.snapshot.names("workload_name");
  const node = units.snapshot.names("node");
  const drawn = rows.slice(0, most);
  const drawUnit = (row: number): ReactNode => {
    const ratio = util && numberAt(util, row);
    const shape = toUnitState(nameAt(state, row));
    const words = [nameAt(unit, row), shape === "allocated" ? formatRatio(ratio) : shape, nameAt(holder, row)];
    const tip = words.filter(Boolean).join(" · ");
    return onChoose ? (
      <button key={row} type="button" aria-label={tip} data-tip={tip} onClick={() => onChoose(nameAt(unit, row) ?? "")}>
        <UnitMark state={shape} ratio={ratio} />
      </button>
    ) : (
      <UnitMark key={row} state={shape} ratio={ratio} tip={tip} />
    );
  };
  return (
    <span className={styles.marks} data-by-node={isByNode || undefined}>
      {isByNode
        ? [...Map.groupBy(drawn, (row) => nameAt(node, row))].map(([name, rowsOfNode]) => (
            <span key={name} data-node={name}>
              {rowsOfNode.map(drawUnit)}
            </span>
          ))
        : drawn.map(drawUnit)}
      {rows.length > most && <small>+{rows.length - most}</small>}
    </span>
  );
}
