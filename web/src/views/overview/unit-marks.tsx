// Units as squares in a row, each with a tooltip; those that do not fit are counted.

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
  onChoose?: (unit: string) => void;
}

export function UnitMarks({ units, rows, most, onChoose }: UnitMarksProps) {
  const util = findMetric(units, "gpu_util_ratio");
  const unit = units.snapshot.names("unit");
  const state = units.snapshot.names("unit_state");
  const holder = units.snapshot.names("workload_name");
  const marks = rows.slice(0, most).map((row) => {
    const ratio = util && numberAt(util, row);
    const shape = toUnitState(nameAt(state, row));
    const words = [nameAt(unit, row), shape === "allocated" ? formatRatio(ratio) : shape, nameAt(holder, row)];
    return { row, shape, ratio, tip: words.filter(Boolean).join(" · ") };
  });
  return (
    <span className={styles.marks}>
      {marks.map(({ row, shape, ratio, tip }) =>
        onChoose ? (
          <button
            key={row}
            type="button"
            aria-label={tip}
            data-tip={tip}
            onClick={() => onChoose(nameAt(unit, row) ?? "")}
          >
            <UnitMark state={shape} ratio={ratio} />
          </button>
        ) : (
          <UnitMark key={row} state={shape} ratio={ratio} tip={tip} />
        ),
      )}
      {rows.length > most && <small>+{rows.length - most}</small>}
    </span>
  );
}
