// How many rows a table shows, at the end of its toolbar, with the ways to take them along.

import type { ReactNode } from "react";
import styles from "./row-count.module.css";

export function RowCount({ words, children }: { words: string; children?: ReactNode }) {
  return (
    <div className={styles.count}>
      <span role="status">{words}</span>
      {children}
    </div>
  );
}
