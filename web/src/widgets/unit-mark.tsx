// A unit as a small square. Allocated units have the color of their utilization and are hatched if it is unknown; free
// is an outline, out of service rose and crossed out, stale hatched grey, requested dashed.

import { classNames } from "../base/class-names.ts";
import { rampColor } from "../base/ramp.ts";
import styles from "./unit-mark.module.css";

export type MarkState = "allocated" | "free" | "unavailable" | "stale" | "requested";

interface UnitMarkProps {
  readonly state: MarkState;
  /** Utilization 0–1; null where not known. */
  readonly ratio?: number | null;
  readonly tip?: string | undefined;
}

export function UnitMark({ state, ratio = null, tip }: UnitMarkProps) {
  const isFilled = state === "allocated" && ratio !== null;
  return (
    <i
      className={classNames(styles.mark, styles[state])}
      style={isFilled ? { background: rampColor(ratio), border: 0 } : undefined}
      data-tip={tip}
    />
  );
}
