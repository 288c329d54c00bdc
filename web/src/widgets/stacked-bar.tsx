// Units by state as one bar. Free is the empty track, out of service hatched rose, stale hatched grey: each is
// recognizable without its hue.

import { formatCount } from "../base/format.ts";
import styles from "./stacked-bar.module.css";

export interface UnitShare {
  readonly total: number;
  readonly allocated: number;
  readonly free: number;
  readonly unavailable: number;
  readonly stale: number;
}

const STATES = ["allocated", "free", "stale", "unavailable"] as const;

export function describeShare(share: UnitShare): string {
  return STATES.filter((state) => state === "allocated" || state === "free" || share[state] > 0)
    .map((state) => `${formatCount(share[state])} ${state === "unavailable" ? "out of service" : state}`)
    .join(" · ");
}

export function StackedBar({ share, size = 8 }: { share: UnitShare; size?: number }) {
  const words = describeShare(share);
  return (
    <span className={styles.bar} style={{ height: size }} role="img" aria-label={words} data-tip={words}>
      {STATES.map((state) =>
        share[state] > 0 ? <i key={state} className={styles[state]} style={{ flexGrow: share[state] }} /> : null,
      )}
    </span>
  );
}
