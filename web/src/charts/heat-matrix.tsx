// A heat map of rows by columns. With few cells the values are written out; tooltips always have them.

import { rampColor } from "../base/ramp.ts";
import styles from "./heat-matrix.module.css";

export interface MatrixCell {
  readonly row: number;
  readonly column: number;
  readonly value: number;
  /** Short enough for a cell. */
  readonly text: string;
  readonly tip: string;
}

interface HeatMatrixProps {
  readonly label: string;
  readonly rowTitle: string;
  readonly columnTitle: string;
  readonly rows: readonly string[];
  readonly columns: readonly string[];
  readonly cells: readonly MatrixCell[];
}

/** With more columns, cells have no room for a number. */
const MOST_WRITTEN = 8;
/** From this share of the ramp on, dark text reads better. */
const LIGHT_FROM = 0.55;

export function HeatMatrix({ label, rowTitle, columnTitle, rows, columns, cells }: HeatMatrixProps) {
  const most = Math.max(1e-12, ...cells.map(({ value }) => value));
  const cellByKey = new Map(cells.map((cell) => [`${cell.row} ${cell.column}`, cell]));
  const isWritten = columns.length <= MOST_WRITTEN;
  return (
    <div className={styles.matrix}>
      <table aria-label={label} style={{ "--columns": columns.length } as React.CSSProperties}>
        <thead>
          <tr>
            <th scope="col" className={styles.corner}>
              {rowTitle} ↓ {columnTitle} →
            </th>
            {columns.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((name, row) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {columns.map((other, column) => {
                const cell = cellByKey.get(`${row} ${column}`);
                const share = cell ? cell.value / most : 0;
                return (
                  <td
                    key={other}
                    data-tip={cell?.tip}
                    style={cell && { background: rampColor(share), color: share > LIGHT_FROM ? "#10151c" : "#f3f6fa" }}
                  >
                    {isWritten ? cell?.text : cell && <span data-visually-hidden={true}>{cell.text}</span>}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
