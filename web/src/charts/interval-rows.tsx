// Rows on one axis: a dot for a value, a bar for its interval, a tick for an extra value; grouped, one color per trace.

import styles from "./interval-rows.module.css";
import { type Scale, thinTicks } from "./scales.ts";

export interface IntervalRow {
  readonly key: string;
  readonly color: string;
  readonly title: string;
  /** Null: not known. */
  readonly dot: number | null;
  readonly bar: readonly [number, number] | null;
  readonly tick?: number | null;
  /** What stands at the right. */
  readonly text: string;
  readonly tip: string;
}

export interface IntervalGroup {
  readonly key: string;
  readonly title: string;
  readonly detail?: string;
  readonly rows: readonly IntervalRow[];
}

interface IntervalRowsProps {
  readonly label: string;
  readonly scale: Scale;
  readonly groups: readonly IntervalGroup[];
  /** A line to compare with. */
  readonly mark?: number;
}

/** Of the whole axis, between labels. */
const LEAST_GAP = 0.13;

export function IntervalRows({ label, scale, groups, mark }: IntervalRowsProps) {
  const percent = (value: number) => `${scale.place(value) * 100}%`;
  const ticks = thinTicks(scale.ticks, scale.place, LEAST_GAP);
  return (
    <figure className={styles.chart} aria-label={label}>
      {groups.map((group) => (
        <div key={group.key} className={styles.group}>
          <span className={styles.name} title={group.title} data-drawn-label={true}>
            {group.title}
            {group.detail && <small>{group.detail}</small>}
          </span>
          <div>
            {group.rows.map((row) => (
              <div key={row.key} className={styles.row} data-tip={row.tip}>
                <div className={styles.track}>
                  {ticks.map(({ at }) => (
                    <i key={at} className={styles.grid} data-drawn-bar={true} style={{ left: percent(at) }} />
                  ))}
                  {mark !== undefined && (
                    <i className={styles.mark} data-drawn-bar={true} style={{ left: percent(mark) }} />
                  )}
                  {row.bar && (
                    <i
                      className={styles.bar}
                      data-drawn-bar={true}
                      style={{
                        left: percent(row.bar[0]),
                        width: `calc(${percent(row.bar[1])} - ${percent(row.bar[0])})`,
                        background: row.color,
                      }}
                    />
                  )}
                  {row.dot !== null && (
                    <i
                      className={styles.dot}
                      data-drawn-bar={true}
                      style={{ left: percent(row.dot), background: row.color }}
                    />
                  )}
                  {row.tick !== undefined && row.tick !== null && (
                    <i
                      className={styles.tick}
                      data-drawn-bar={true}
                      style={{ left: percent(row.tick), background: row.color }}
                    />
                  )}
                </div>
                <span className={styles.value} data-drawn-label={true}>
                  {row.text}
                </span>
                <span data-visually-hidden={true}>{row.tip}</span>
              </div>
            ))}
          </div>
        </div>
      ))}
      <div className={styles.axis} aria-hidden="true">
        <span />
        <div>
          {ticks.map(({ at, text }) => (
            <span key={at} data-drawn-label={true} style={{ left: percent(at) }}>
              {text}
            </span>
          ))}
        </div>
      </div>
    </figure>
  );
}
