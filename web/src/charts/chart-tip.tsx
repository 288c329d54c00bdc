// The tooltip of a chart: a title, and a value for each color.

import styles from "./chart.module.css";

export interface TipRow {
  readonly key: string;
  readonly title: string;
  readonly color: string;
  readonly text: string;
}

interface ChartTipProps {
  /** 0–1 along the chart; the tooltip is placed on the side with more room. */
  readonly at: number;
  readonly title: string;
  readonly rows: readonly TipRow[];
  /** Said instead, where there are no rows. */
  readonly none?: string | undefined;
}

const GAP = "10px";

export function ChartTip({ at, title, rows, none }: ChartTipProps) {
  const place = at < 0.5 ? { left: `calc(${at * 100}% + ${GAP})` } : { right: `calc(${(1 - at) * 100}% + ${GAP})` };
  return (
    <div className={styles.tip} style={place} role="status">
      <b>{title}</b>
      {rows.length === 0 && none !== undefined && <span>{none}</span>}
      {rows.map(({ key, title: name, color, text }) => (
        <span key={key}>
          <i data-swatch={true} style={{ background: color }} /> {name} <em>{text}</em>
        </span>
      ))}
    </div>
  );
}
