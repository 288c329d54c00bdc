// A ratio as a short bar with its number.

import { formatRatio } from "../base/format.ts";
import { rampColor } from "../base/ramp.ts";
import styles from "./meter.module.css";

interface MeterProps {
  /** 0–1; null where not known. */
  readonly ratio: number | null;
  /** The least and greatest of what the ratio is the mean of. */
  readonly range?: readonly [min: number, max: number] | undefined;
  /** What to write instead of the percentage. */
  readonly text?: string;
  /** Ramp colors say how well something is used; plain bars only how full it is. */
  readonly look?: "ramp" | "plain";
  readonly tip?: string | undefined;
}

/** What is closer together than this looks like a speck, not like a range. */
const NARROWEST_RANGE = 0.06;

export function Meter({ ratio, range, text, look = "ramp", tip }: MeterProps) {
  const label = text ?? formatRatio(ratio);
  return (
    <span className={styles.meter} data-tip={tip}>
      <span className={styles.track} data-missing={ratio === null || undefined}>
        {ratio !== null && (
          <i
            className={styles.fill}
            style={{ width: percent(ratio), ...(look === "ramp" ? { background: rampColor(ratio) } : {}) }}
          />
        )}
        {range && range[1] - range[0] > NARROWEST_RANGE && (
          <i className={styles.range} style={{ left: percent(range[0]), right: percent(1 - range[1]) }} />
        )}
      </span>
      <span className={styles.label}>{label}</span>
    </span>
  );
}

function percent(ratio: number): string {
  return `${Math.min(1, Math.max(0, ratio)) * 100}%`;
}
