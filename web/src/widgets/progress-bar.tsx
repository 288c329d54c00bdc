// How far something is that takes a while, as a thin line.

import styles from "./progress-bar.module.css";

/** `value`: from 0 to 1. */
export function ProgressBar({ label, value }: { label: string; value: number }) {
  return <progress className={styles.bar} max={1} value={value} aria-label={label} />;
}
